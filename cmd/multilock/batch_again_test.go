//go:build unix

package main_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// With --retry-failed, permanently failed jobs run again, and successful jobs do not.
func TestBatchRetriesWhatHasFailed(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	ran := filepath.Join(t.TempDir(), "ran")
	list := s.list("good\techo good >>"+ran, "bad\techo bad >>"+ran+"; test -e "+ran+".fixed", "worse\techo worse >>"+ran+"; false")
	require.Equal(t, 1, s.run("batch", "-j1", list).code)
	require.Contains(t, s.run("batch", "-j1", list).stdout, "3 ended earlier", "nothing runs again by itself")
	require.Contains(t, s.run("batch", "-j1", "--retry-failed", "--dry-run", list).stderr, "2 failed jobs run again")
	require.NoError(t, os.WriteFile(ran+".fixed", nil, 0o600))
	got := s.run("batch", "-j1", "--retry-failed", list)
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stderr, "2 failed jobs run again")
	require.Regexp(t, `^3 jobs: 2 done, 1 failed, 1 ended earlier, 2 run here, `, got.stdout)

	require.Equal(t, "deleted the result of worse\n", s.must("clean", "--results", "--failed"))
	require.Equal(t, "no results to delete\n", s.must("clean", "--results", "--failed"))
	require.Equal(t, 1, s.run("batch", "-j1", list).code)
	require.Equal(t, "no results to delete\n", s.must("clean", "--results", "--failed", "good"))
	require.Equal(t, 125, s.run("clean", "--failed").code)
	text, err := os.ReadFile(ran)
	require.NoError(t, err)
	require.Equal(t, "good\nbad\nworse\nbad\nworse\nworse\n", string(text))
}

func TestCleanForgetsFailuresOfRuns(t *testing.T) {
	t.Parallel()
	s := recorded(t)
	require.Equal(t, "deleted the result of bad\n", s.must("clean", "--results", "--failed"))
	require.Contains(t, s.must("status"), "3 done\n")
}

// A list on the command line is the same list on each host, with any values.
func TestBatchOfValues(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.must("batch", "-j1", `printf '<%s>\n' {} {#}`, ":::", "a b", "it's", "-n", "$(id)")
	require.Equal(t, "<a b>\n<1>\n", s.logOf("1"))
	require.Equal(t, "<it's>\n<2>\n", s.logOf("2"))
	require.Equal(t, "<-n>\n<3>\n", s.logOf("3"))
	require.Equal(t, "<$(id)>\n<4>\n", s.logOf("4"))
	require.Contains(t, s.must("batch", "-j7", `printf '<%s>\n' {} {#}`, ":::", "a b", "it's", "-n", "$(id)"), "4 ended earlier")
	other := s.run("batch", `printf '<%s>\n' {} {#}`, ":::", "another")
	require.Equal(t, 125, other.code)
	require.Contains(t, other.stderr, "choose another group with -g")
	require.Equal(t, 125, s.run("batch", "echo {}", ":::").code)
}

// With --add a list grows: results remain valid, and jobs keep their names.
func TestBatchAddsToAList(t *testing.T) {
	t.Parallel()
	s, jobs := newStation(t), []string{"echo a", "echo b", "echo c"}
	first := s.list(jobs...)
	s.must("batch", "-j1", first)
	for len(jobs) < 12 {
		jobs = append(jobs, "echo more")
	}
	longer := s.list(append(jobs, "BARRIER", "NEEDS cpus=2", "echo last")...)
	got := s.run("batch", "-j2", longer)
	require.Equal(t, 125, got.code)
	require.Contains(t, got.stderr, "use --add")
	require.Regexp(t, `3 +done`, s.must("batch", "-j2", "--add", "--dry-run", longer))
	require.Regexp(t, `^13 jobs: 13 done, 3 ended earlier, 10 run here, `, s.must("batch", "-j2", "--add", longer))
	require.Equal(t, "more\n", s.logOf("9"))
	require.Equal(t, "last\n", s.logOf("13"))
	require.Contains(t, s.must("batch", "-j2", "--add", longer), "13 ended earlier")
	require.Contains(t, s.must("batch", "-j1", first), "3 ended earlier")
	require.Contains(t, s.must("status", "13"), "done")

	got = s.run("batch", "-j2", "--add", s.list(append(jobs, "echo another")...))
	require.Equal(t, 125, got.code)
	require.Contains(t, got.stderr, "a different list of jobs: job 13")
	s.must("clean", "--results", "13")
	require.Contains(t, s.must("batch", "-j2", "--add", longer), "12 ended earlier, 1 run here")
	s.must("clean", "--results")
	require.Contains(t, s.must("batch", "-j2", longer), "13 run here")
}

// A list from Windows is the same as one without its marks.
func TestBatchOfWindowsLines(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	list := s.list("\ufeffa\techo a\r", "b\techo b\r")
	got := s.run("batch", list)
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stderr, "warning: "+list+": its lines end with CR LF")
	require.Contains(t, got.stderr, "warning: "+list+": it begins with a byte order mark")
	require.Equal(t, "a\n", s.logOf("a"))
	require.Equal(t, "b\n", s.logOf("b"))
	require.Contains(t, s.must("batch", s.list("a\techo a", "b\techo b")), "2 ended earlier")
	require.NotContains(t, s.run("batch", "-q", list).stderr, "CR LF")
	require.Zero(t, s.run("wait", "--members-from", list).code)
}

// An ambiguous line keeps all jobs from running until it is corrected.
func TestBatchRefusesALine(t *testing.T) {
	t.Parallel()
	s, w := newStation(t), newWitness(t)
	for wrong, stderr := range map[string]string{
		"printf 'a\tb'":                        "line 2 has a tab and line 1 has none",
		"echo\r":                               "line 2: it ends with a carriage return",
		"echo a\recho":                         "line 2: there is a carriage return",
		"true " + strings.Repeat("x", 200_000): "line 2: the command has 200005 bytes",
	} {
		got := s.run("batch", "-j1", s.list("echo 1 >>"+w.path, wrong, "echo 3 >>"+w.path))
		require.Equal(t, 125, got.code, stderr)
		require.Contains(t, got.stderr, stderr)
		require.Less(t, len(got.stderr), 2000)
	}
	s.requireUntouched()
	s.must("batch", "-j1", s.list("echo 1 >>"+w.path, "true", "echo 3 >>"+w.path))
	require.Equal(t, []string{"1", "3"}, w.ran())
}

// The output of jobs is printed on request, and stored in any case.
func TestBatchPrints(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	list := s.list("a\techo one; echo two >&2", "b\tprintf 'no end'")
	got := s.run("batch", "-j1", "--tag", list)
	require.Zero(t, got.code, got.stderr)
	require.Equal(t, "a\tone\na\ttwo\nb\tno end\n", got.stdout)
	require.Regexp(t, `^multilock: 2 jobs: 2 done, 2 run here, in \S+\n$`, got.stderr)
	require.Equal(t, "one\ntwo\n", s.logOf("a"))
	require.Equal(t, "no end", s.logOf("b"))
	apart := s.run("batch", "-g", "apart", "-j1", "--print", "--separate", "-q", list)
	require.Equal(t, ended{0, "one\nno end\n", "two\n"}, apart)
	require.Equal(t, 125, s.run("batch", "--tag", "--json", list).code)
}

// A failed job that is not in the list does not run again.
func TestBatchRetriesItsOwn(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	require.Equal(t, 1, s.run("run", "--once", "-n", "migrate", "--", "false").code)
	require.Zero(t, s.run("batch", "--retry-failed", s.list("good\ttrue")).code)
	require.Equal(t, 1, s.run("run", "--once", "-n", "migrate", "--", "true").code, "its failure is final")
}

// If the list or an option names another shell than sh, it runs the commands on all hosts.
func TestBatchShell(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	const words = "a\t[[ a == a ]] && cat <(echo a)"
	list, headed := s.list(words), s.list("# for bash", "SHELL bash", words)
	require.Zero(t, s.run("batch", "--shell", "bash", list).code)
	require.Equal(t, "a\n", s.logOf("a"))
	require.Contains(t, s.must("batch", headed), "1 ended earlier")
	got := s.run("batch", list)
	require.Equal(t, 125, got.code)
	require.Contains(t, got.stderr, "the same jobs with shell bash, and here with no barriers, needs or shell")
	require.Zero(t, s.run("wait", "--members-from", headed).code)

	require.Zero(t, s.run("batch", "-g", "sh", "--shell", "sh", s.list("false | true")).code)
	require.Zero(t, s.run("batch", "-g", "sh", s.list("false | true")).code, "it is the usual one")
	require.Equal(t, 1, s.run("batch", "-g", "pipes", "--shell", "bash -o pipefail", s.list("false | true")).code)

	for stderr, args := range map[string][]string{
		"the shell no-such-shell cannot be run on this host": {"--shell", "no-such-shell", list},
		"write the name of a shell and its options":          {"--shell", `bash -o "pipefail"`, list},
		"--shell differs from the line SHELL":                {"--shell", "bash -e", headed},
		"line 2: SHELL is for all jobs of the list":          {s.list("true", "SHELL bash")},
		"line 2: a list has one line SHELL":                  {s.list("SHELL bash", "SHELL bash", "true")},
		"line 1: SHELL: write the name":                      {s.list("SHELL ", "true")},
	} {
		got := s.run(slices.Concat([]string{"batch", "-g", "refused"}, args)...)
		require.Equal(t, 125, got.code, stderr)
		require.Contains(t, got.stderr, stderr)
	}
}

// Each attempt of a job counts, with its duration, in the report and in the metrics.
func TestBatchCountsAttempts(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	again := `test $MULTILOCK_ATTEMPT = 3 || exit 4`
	s.must("batch", "-j2", "--retries", "2", s.list("a\t"+again, "b\ttrue", "c\ttrue", "d\ttrue"))
	var page struct {
		Hosts []struct {
			RunCount     int `json:"run_count"`
			Done, Failed int
		}
		Jobs []struct {
			Name, State string
			Runs        []struct {
				State         string
				Exit, Attempt int
				Start, End    time.Time
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(s.must("report", "--json")), &page))
	require.Len(t, page.Hosts, 1)
	require.Equal(t, [3]int{6, 4, 2}, [3]int{page.Hosts[0].RunCount, page.Hosts[0].Done, page.Hosts[0].Failed})
	require.Len(t, page.Jobs, 4)
	var ends []string
	for i, r := range page.Jobs[0].Runs {
		ends = append(ends, fmt.Sprint(r.State, " ", r.Exit, " ", r.Attempt))
		require.False(t, i > 0 && r.Start.Before(page.Jobs[0].Runs[i-1].End), page.Jobs[0].Runs)
	}
	require.Equal(t, []string{"failed 4 1", "failed 4 2", "done 0 3"}, ends)
	require.Equal(t, "done", page.Jobs[0].State)
	found := s.metrics()
	of := func(metric string) string { return found[metric+`{group=".locks",name="#jobs"}`] }
	require.Equal(t, []string{"6", "2", "6"}, []string{of("multilock_runs_total"), of("multilock_runs_failed_total"), of("multilock_run_duration_seconds_count")})
	sum, err := strconv.ParseFloat(of("multilock_run_duration_seconds_sum"), 64)
	require.NoError(t, err)
	require.Positive(t, sum)
}

// Values come from files and standard input, in columns with names, and each job has its slot number.
func TestBatchOfValuesInFiles(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	values := s.list("img\tw", "a b.png\t64", "c.png\t128")
	s.must("batch", "-j1", "--header", ":", "--colsep", `\t`, "-a", values, `echo {img.} {w} {#}/{##} "$MULTILOCK_SLOT"`)
	require.Equal(t, "a b 64 1/2 1\n", s.logOf("1"))
	require.Equal(t, "c 128 2/2 1\n", s.logOf("2"))
	piped := s.command("-g", "two", "batch", "-j2", "echo {2}{1}", "::::", "-", ":::", "1", "2")
	piped.Stdin = strings.NewReader("x\ny\n")
	got := s.finish(piped)
	require.Zero(t, got.code, got.stderr)
	require.Equal(t, "1y\n", s.must("-g", "two", "logs", "3"))
	found := s.command("-g", "three", "batch", "-j1", "-0", "-a", "-", "printf '<%s>'")
	found.Stdin = strings.NewReader("x\x00y\nz\x00")
	require.Zero(t, s.finish(found).code)
	require.Equal(t, "<y\nz>", s.must("-g", "three", "logs", "2"))
	for args, why := range map[string]string{
		"-0 x ::: a":           "--null is for jobs or values in a file",
		"--colsep , FILE":      "--colsep and --header are for values",
		"-a FILE":              "write the command for the values",
		"--colsep ( x ::: a":   "--colsep: error parsing regexp",
		"--header img x ::: a": "choose :",
		"x{%} ::: a":           "MULTILOCK_SLOT",
		"x :::: missing":       "missing",
	} {
		got := s.run(append([]string{"-g", "three", "batch"}, strings.Fields(args)...)...)
		require.Equal(t, 125, got.code, args)
		require.Contains(t, got.stderr, why, args)
	}
}

// Many failures are grouped by how they ended. Each is described on one host, the one that ran it.
func TestBatchGroupsFailures(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	list := []string{"batch", "-j3", "exit {}", ":::", "1", "2", "3", "0", "3", "3", "4"}
	got := s.run(list...)
	require.Equal(t, 1, got.code)
	require.Regexp(t, "^multilock: 3 jobs failed with exit code 3: 3, 5, 6\n"+
		"multilock: 1 job failed with exit code 1: 1\n.* code 2: 2\n.* code 4: 7\n"+
		`multilock: their output: multilock -d \S+ logs --failed`+"\n"+
		`multilock: to rerun the failed jobs: multilock -d \S+ batch --retry-failed --jobs=3 'exit \{\}' ::: 1 2 3 0 3 3 4`+"\n.*6 of 7 jobs failed\n$", got.stderr)
	require.Equal(t, got.stderr, s.run(list...).stderr, "nothing is left to do, so all are described")

	s.must("clean", "--results", "1")
	got = s.run(list...)
	require.Contains(t, got.stderr, `job "1" failed with exit code 1`)
	require.Contains(t, got.stderr, "5 jobs failed on other hosts or before")
}

// A batch reports at the end the last line of a failed job's output, and a command that retries it, ready to
// be pasted.
func TestBatchNamesTheRetry(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	there := filepath.Join(t.TempDir(), "there")
	list := s.list("a\techo fine", "b\ttest -e "+there+" || { echo starting; printf '10 %%\\rValueError: 7\\r\\n' >&2; exit 3; }")
	got := s.run("batch", "--separate", "-j", "1", "--json", list)
	require.Contains(t, got.stdout, `"last_line": "ValueError: 7"`)
	got = s.run("batch", "--separate", "-v", "-j", "1", "--retry-failed", list)
	require.Contains(t, got.stderr, "multilock: the last line of b: ValueError: 7\n")
	_, again, found := strings.Cut(got.stderr, "to rerun the failed jobs: multilock ")
	require.True(t, found, got.stderr)
	again, _, _ = strings.Cut(again, "\n")
	require.Regexp(t, `^-d \S+ batch --retry-failed --separate --jobs=1 \S+$`, again)

	require.NoError(t, os.WriteFile(there, nil, 0o600))
	require.Contains(t, s.must(strings.Fields(again)...), "2 jobs: 2 done")

	for i, args := range [][]string{
		{"batch", "-"},
		{"batch", "exit 1; ", "::::", "-"},
		{"batch", "curl --password=hunter2 {}; exit 1", ":::", "a"},
		append([]string{"batch", "exit {}", ":::"}, strings.Split(strings.Repeat("1 ", 600)+"1", " ")...),
	} {
		cmd := s.command(append([]string{"-g", fmt.Sprint("other", i)}, args...)...)
		cmd.Stdin = strings.NewReader("x\tfalse\n")
		got = s.finish(cmd)
		require.Contains(t, got.stderr, "to rerun the failed jobs: add --retry-failed to this command")
		require.NotContains(t, got.stderr, "hunter2")
	}
}

// --retry-on retries only after these exit codes, in run as in batch.
func TestRetryOn(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	got := s.run("batch", "--retries", "2", "--retry-on", "75,9", "echo $MULTILOCK_ATTEMPT; exit {}", ":::", "75", "1", "9")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stdout, "3 failed, 7 run here", got.stderr)
	require.Equal(t, "1\n", s.logOf("2"))
	for code, attempts := range map[string]string{"75": "123", "1": "1"} {
		require.Equal(t, attempts, s.run("run", "--once", "--retries", "2", "--retry-on", "75", "-n", code, "--", "sh", "-c", "printf $MULTILOCK_ATTEMPT; exit "+code).stdout)
	}
	start := time.Now()
	got = s.run("run", "--once", "--retries", "1", "--retry-delay", "1s", "-n", "late", "--", "sh", "-c", "exit $((2 - MULTILOCK_ATTEMPT))")
	require.Zero(t, got.code, got.stderr)
	require.Regexp(t, `trying again in (1s|\d+ms|1\.\d+s), attempt 2 of 2`, got.stderr)
	require.Greater(t, time.Since(start), 700*time.Millisecond)
	for _, wrong := range []string{"0", "256", "x", "1,,2", ""} {
		require.Contains(t, s.run("batch", "--retries", "1", "--retry-on", wrong, "x", ":::", "1").stderr, "no exit code of a failure", wrong)
	}
}

// --jitter delays a run, and a signal ends the delay.
func TestRunJitter(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	require.Equal(t, "ran\n", s.must("run", "--jitter", "100ms", "-n", "x", "--", "echo", "ran"))
	waiting := s.command("run", "-v", "--jitter", "2400h", "-n", "x", "--", "echo", "ran")
	var out bytes.Buffer
	waiting.Stdout, waiting.Stderr = &out, nil
	told, err := waiting.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, waiting.Start())
	line, err := bufio.NewReader(told).ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, "(--jitter)")
	require.NoError(t, waiting.Process.Signal(syscall.SIGTERM))
	require.Error(t, waiting.Wait())
	require.Equal(t, 128+int(syscall.SIGTERM), waiting.ProcessState.ExitCode())
	require.Empty(t, out.String())
}
