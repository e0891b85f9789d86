//go:build unix

package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRunPassesTheExitCodeThrough(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	unrunnable := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.WriteFile(unrunnable, []byte("x"), 0o600))
	cases := map[string]struct {
		command []string
		code    int
		stderr  string
	}{
		"success":                      {[]string{"true"}, 0, ""},
		"failure":                      {[]string{"sh", "-c", "exit 3"}, 3, ""},
		"a code that is ours, too":     {[]string{"sh", "-c", "exit 121"}, 121, ""},
		"255":                          {[]string{"sh", "-c", "exit 255"}, 255, ""},
		"a signal":                     {[]string{"sh", "-c", "kill -TERM $$"}, 143, ""},
		"SIGKILL":                      {[]string{"sh", "-c", "kill -KILL $$"}, 137, ""},
		"not there":                    {[]string{"/nonexistent/program"}, 127, "multilock: /nonexistent/program: command not found\n"},
		"not in PATH":                  {[]string{"no-such-program"}, 127, "multilock: no-such-program: command not found\n"},
		"not executable":               {[]string{unrunnable}, 126, "multilock: " + unrunnable + ": cannot be run: permission denied\n"},
		"options belong to the job":    {[]string{"sh", "-c", `test "$1" = --ttl`, "sh", "--ttl"}, 0, ""},
		"the job's own standard error": {[]string{"sh", "-c", "echo oops >&2; exit 1"}, 1, "oops\n"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &station{t: t, base: s.base}
			got := s.run(append([]string{"run", "-n", name, "--"}, c.command...)...)
			require.Equal(t, ended{c.code, "", c.stderr}, got)
			require.Equal(t, "free", s.lock(name).State)
		})
	}
}

func TestRunWithoutDashes(t *testing.T) {
	t.Parallel()
	got := newStation(t).run("run", "-n", "x", "echo", "-n", "y", "--wait")
	require.Equal(t, ended{0, "y --wait", ""}, got)
}

func TestRunGivesTheJobItsVariables(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	job := []string{"--", "sh", "-c", `echo "$MULTILOCK_NAME|$MULTILOCK_GROUP|$MULTILOCK_TOKEN|$MULTILOCK_FENCE"`}
	first := strings.Split(strings.TrimSpace(s.must(append([]string{"run", "-n", "a name", "-g", "nights"}, job...)...)), "|")
	second := strings.Split(strings.TrimSpace(s.must(append([]string{"run", "-n", "a name", "-g", "nights"}, job...)...)), "|")
	require.Equal(t, []string{"a name", "nights"}, first[:2])
	require.NotEmpty(t, first[2])
	require.NotEqual(t, first[2], second[2])
	require.Equal(t, "1", first[3])
	require.Equal(t, "2", second[3])
}

// Data passes through the job's standard streams unchanged.
func TestRunLeavesTheStreamsAlone(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	data := bytes.Repeat([]byte("\x00\xff\x1b[31m\r\n"), 50_000)
	cmd := s.command("run", "--", "sh", "-c", "cat; printf '\\377' >&2")
	cmd.Stdin = bytes.NewReader(data)
	got := s.finish(cmd)
	require.Zero(t, got.code)
	require.Equal(t, string(data), got.stdout)
	require.Equal(t, "\xff", got.stderr)
}

// With --json-fd the standard error is only the job's, and no other process inherits the descriptor.
func TestRunJSONDescriptor(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	run := func(job string, options ...string) (told []map[string]any, got ended) {
		read, write, err := os.Pipe()
		require.NoError(t, err)
		cmd := s.command(slices.Concat([]string{"run", "--json", "--json-fd", "3"}, options, []string{"--", "sh", "-c", job})...)
		cmd.ExtraFiles = []*os.File{write}
		got = s.finish(cmd)
		require.NoError(t, write.Close())
		text, err := io.ReadAll(read) // ends only if the job's background processes do not have it
		require.NoError(t, errors.Join(err, read.Close()))
		for line := range strings.Lines(string(text)) {
			told = append(told, map[string]any{})
			require.NoError(t, json.Unmarshal([]byte(line), &told[len(told)-1]))
		}
		return told, got
	}
	told, got := run(`echo '{"ran": true, "exit": 0}' >&2; printf '\351' >&2; sleep 1000 >/dev/null 2>&1 & (echo x >&3) 2>/dev/null && echo leaked; exit 3`)
	require.Equal(t, ended{3, "", "{\"ran\": true, \"exit\": 0}\n\xe9"}, got)
	require.Len(t, told, 1)
	require.InDelta(t, 3, told[0]["exit"], 0)
	told, got = run("true", "-E", "300")
	require.Equal(t, ended{125, "", ""}, got)
	require.Contains(t, told[0]["message"], "-E 300")
	for stderr, args := range map[string][]string{
		"--json-fd: descriptor 2 is one of the job's":     {"--json", "--json-fd", "2"},
		"--json-fd: descriptor 77: bad file descriptor":   {"--json", "--json-fd", "77"},
		"--json-fd needs --json: it sets where JSON goes": {"--json-fd", "3"},
	} {
		cmd := s.command(slices.Concat([]string{"run"}, args, []string{"--", "true"})...)
		got := s.finish(cmd)
		require.Equal(t, 125, got.code)
		require.Contains(t, got.stderr, stderr)
	}
}

func TestRunJSON(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	cases := map[string]struct {
		options []string
		command string
		want    map[string]any
	}{
		"success":        {nil, "true", map[string]any{"ran": true, "job_exit": 0.0, "exit": 0.0}},
		"failure":        {nil, "exit 4", map[string]any{"ran": true, "job_exit": 4.0, "exit": 4.0}},
		"out of time":    {[]string{"--max-runtime", "50ms"}, "exec sleep 1000", map[string]any{"ran": true, "job_exit": 143.0, "exit": 124.0}},
		"killed":         {nil, "kill -KILL $$", map[string]any{"ran": true, "job_exit": 137.0, "exit": 137.0}},
		"nothing to run": {nil, "", map[string]any{"ran": false, "job_exit": nil, "exit": 127.0}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &station{t: t, base: s.base}
			args := append([]string{"run", "--json", "-n", name}, c.options...)
			if c.command == "" {
				args = append(args, "--", "/nonexistent")
			} else {
				args = append(args, "--", "sh", "-c", c.command)
			}
			got := s.run(args...)
			require.Empty(t, got.stdout)
			report := jsonLine(t, got.stderr)
			require.InEpsilon(t, report["exit"].(float64)+1, float64(got.code)+1, 1e-9)
			require.Equal(t, name, report["name"])
			require.Equal(t, ".locks", report["group"])
			require.NotEmpty(t, report["token"])
			require.Contains(t, report, "waited_seconds")
			require.Contains(t, report, "held_seconds")
			for field, want := range c.want {
				require.Equal(t, want, report[field], field)
			}
		})
	}
}

// jsonLine finds the only report among messages.
func jsonLine(t *testing.T, text string) map[string]any {
	t.Helper()
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "{") {
			var value map[string]any
			require.NoError(t, json.Unmarshal([]byte(line), &value))
			if _, message := value["level"]; !message {
				return value
			}
		}
	}
	t.Fatalf("no JSON in %q", text)
	return nil
}

func TestRunVerboseAndQuiet(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	require.Empty(t, s.run("run", "-q", "--", "true").stderr)
	require.Empty(t, s.run("run", "--", "true").stderr)
	told := s.run("run", "-v", "--", "true").stderr
	require.Regexp(t, `(?m)^multilock: took lock "lock" after `, told)
	require.Regexp(t, `(?m)^multilock: released lock "lock" after `, told)
}

func TestSlots(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	first, second := s.hold("x", "--slots", "2"), s.hold("x", "--slots", "2")
	locks := s.locks()
	require.Len(t, locks, 2)
	require.Equal(t, "x#slot-1", locks[0].Name)
	require.Equal(t, "x#slot-2", locks[1].Name)

	got := s.run("run", "-n", "x", "--slots", "2", "--", "true")
	require.Equal(t, 121, got.code)
	require.Contains(t, got.stderr, `all 2 slots of "x" are held`)
	require.Equal(t, ended{}, s.run("run", "-n", "x", "--slots", "2", "-q", "-E", "0", "--", "true"))
	got = s.run("run", "-n", "x", "--slots", "2", "--wait", "3s", "--", "true")
	require.Equal(t, 124, got.code)
	require.Contains(t, got.stderr, "all 2 slots")

	waiting := s.start("run", "-n", "x", "--slots", "2", "--wait", "forever", "--", "sh", "-c", "echo $MULTILOCK_NAME $MULTILOCK_SLOT")
	waiting.Err.Expect(t, `waiting for one of the 2 slots of "x"`)
	require.Zero(t, first.end().code)
	got = waiting.wait()
	require.Zero(t, got.code)
	require.Contains(t, []string{"x 1\n", "x 2\n"}, got.stdout)
	require.Zero(t, second.end().code)
	require.Empty(t, s.locks())
}

func TestSlotInTheReport(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	got := s.run("run", "-n", "x", "--slots", "1", "--json", "--", "true")
	var report struct {
		Name string
		Slot int
	}
	require.NoError(t, json.Unmarshal([]byte(got.stderr), &report))
	require.Equal(t, "x#slot-1", report.Name)
	require.Equal(t, 1, report.Slot)
	require.Equal(t, []string{"acquired", "released"}, happened(s.history("x#slot-1")))
}

func TestJobWithoutSlotsHasNoNumber(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	require.NotContains(t, s.must("run", "--", "env"), "MULTILOCK_SLOT")
}

// ample is a --max-runtime within which a job prints its first line or sets its traps even on a busy machine.
const ample = "3s"

// stubborn is a job with a grandchild, both of which ignore SIGTERM. If one survived, the test would hang on
// its output.
var stubborn = []string{"--", "sh", "-c", `trap "" TERM; (sleep 1000; true) & echo ready; wait; sleep 1000`}

func TestMaxRuntimeEndsTheWholeTree(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	got := s.run(append([]string{"run", "-n", "x", "--max-runtime", ample, "--grace", "50ms"}, stubborn...)...)
	require.Equal(t, 124, got.code)
	require.Contains(t, got.stderr, "the job has run for "+ample+", the limit of --max-runtime; ending it")
	require.Equal(t, "free", s.lock("x").State)
	last := s.history("x")[1]
	require.Equal(t, [2]int{124, 137}, [2]int{*last.Exit, *last.JobExit})
	require.Contains(t, last.Why, "--max-runtime")
}

// The exit code of a run is the same in its history, report and metrics. The history has the job's exit code
// in addition.
func TestExitCodeOfARunIsRecorded(t *testing.T) {
	t.Parallel()
	const obedient = `trap "exit 0" TERM; sleep 1000 & wait`
	limit := []string{"--max-runtime", ample}
	for name, c := range map[string]struct {
		options []string
		command string
		code    int
		own     int // the job's, if it differs
	}{
		"success":                        {nil, "true", 0, -1},
		"failure":                        {nil, "exit 3", 3, -1},
		"killed":                         {nil, "kill -9 $$", 137, -1},
		"out of time":                    {limit, "exec sleep 1000", 124, 143},
		"out of time, in order":          {limit, obedient, 124, 0},
		"out of time, recorded":          {append([]string{"--once"}, limit...), "exec sleep 1000", 124, 143},
		"out of time in order, recorded": {append([]string{"--once"}, limit...), obedient, 124, 0},
		"lost":                           {nil, `"$0" break x --force --now 2>/dev/null; exec sleep 1000`, 122, 143},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStation(t)
			args := slices.Concat([]string{"run", "-n", "x", "--ttl", "2s"}, c.options, []string{"--", "sh", "-c", c.command, s.command().Path})
			require.Equal(t, c.code, s.run(args...).code)
			events := s.history("x")
			last := events[len(events)-1]
			require.Equal(t, c.code, *last.Exit)
			if c.own >= 0 {
				require.Equal(t, c.own, *last.JobExit)
			} else {
				require.Nil(t, last.JobExit)
			}
			var page struct {
				Jobs []struct{ Runs []struct{ Exit int } }
			}
			require.NoError(t, json.Unmarshal([]byte(s.must("report", "--json")), &page))
			require.Len(t, page.Jobs[0].Runs, 1)
			require.Equal(t, c.code, page.Jobs[0].Runs[0].Exit)
			require.Contains(t, s.must("metrics"), fmt.Sprintf("\nmultilock_runs_failed_total{group=\".locks\",name=\"x\"} %d\n", min(c.code, 1)))
			if slices.Contains(c.options, "--once") {
				require.Equal(t, c.code, s.run(args...).code, "it is recorded")
				require.Equal(t, c.code, s.result("x").Exit)
			}
		})
	}
}

func TestMaxRuntimeAsksBeforeItKills(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	got := s.run("run", "--max-runtime", ample, "--grace", "1h", "--", "sh", "-c", `trap "echo asked; kill -9 \$! 2>/dev/null; exit 5" TERM; sleep 1000 & wait`)
	require.Equal(t, 124, got.code, "the limit, whatever the job says to it")
	require.Equal(t, "asked\n", got.stdout)
}

func TestMinHoldKeepsTheLock(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	holder := s.start("run", "-n", "x", "--min-hold", "1h", "--", "sh", "-c", "echo pid $$.")
	holder.Expect(".")
	job := pidIn(t, holder.Out.String())
	s.eventually("the job ends", func() bool { return syscall.Kill(job, 0) != nil })
	require.Equal(t, 121, s.run("run", "-n", "x", "--", "true").code)
	holder.Signal(syscall.SIGTERM)
	require.Zero(t, holder.wait().code, "the job was done")
	s.must("run", "-n", "x", "--min-hold", "1ms", "--", "true")
}

// pidIn finds the process ID in "pid N.".
func pidIn(t *testing.T, text string) int {
	t.Helper()
	_, number, _ := strings.Cut(text, "pid ")
	number, _, _ = strings.Cut(number, ".")
	pid, err := strconv.Atoi(number)
	require.NoError(t, err, text)
	return pid
}

// breakUnder breaks the lock of a run while its job runs.
func (s *station) breakUnder(name string) {
	s.t.Helper()
	require.Contains(s.t, s.must("break", name, "--force", "--now"), "broke lock")
}

func TestOnLost(t *testing.T) {
	t.Parallel()
	// The grace of an hour does not apply: the remaining time of the TTL does.
	for _, what := range []string{"default", "term", "kill"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := newStation(t)
			args := []string{"run", "-n", "x", "--ttl", "3s", "--grace", "1h"}
			if what != "default" {
				args = append(args, "--on-lost", what)
			}
			job := s.start(append(args, stubborn...)...)
			job.Expect("ready")
			s.awaitNote("x")
			s.breakUnder("x")
			got := job.wait()
			require.Equal(t, 122, got.code)
			require.Contains(t, got.stderr, `lock "x" is lost`)
			require.Contains(t, got.stderr, "ending the job")
			events := s.history("x")
			require.Equal(t, []string{"acquired", "broken", "lost"}, happened(events))
			require.Contains(t, events[1].Why, "by force, though held: its job lives")
			require.Equal(t, [2]int{122, 137}, [2]int{*events[2].Exit, *events[2].JobExit})
		})
	}
}

func TestOnLostTermAsksFirst(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	job := s.start("run", "-n", "x", "--ttl", "10s", "--", "sh", "-c", `trap "echo asked; kill -9 \$! 2>/dev/null; exit 0" TERM; sleep 1000 & echo ready; wait`)
	job.Expect("ready")
	s.breakUnder("x")
	got := job.wait()
	require.Equal(t, 122, got.code, "what was lost is lost, however well the job took it")
	require.Equal(t, "ready\nasked\n", got.stdout)
}

func TestOnLostIgnore(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	job := s.hold("x", "--ttl", "2s", "--on-lost", "ignore")
	s.breakUnder("x")
	job.Err.Expect(t, "the job goes on (--if-lost ignore)")
	other := s.hold("x")
	_, err := job.In.Write([]byte("still here\n"))
	require.NoError(t, err)
	got := job.end()
	require.Equal(t, 122, got.code)
	require.Equal(t, "ready\nstill here\n", got.stdout)
	require.Equal(t, "held", s.lock("x").State, "the loser leaves the other's lock alone")
	require.Zero(t, other.end().code)
}

func TestOnLostIgnoreStillHasALimit(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	args := []string{"run", "-n", "x", "--ttl", "1s", "--on-lost", "ignore", "--max-runtime", ample, "--grace", "50ms"}
	job := s.start(append(args, stubborn...)...)
	job.Expect("ready")
	require.NoError(t, os.RemoveAll(filepath.Join(s.base, ".locks", "x")))
	require.Equal(t, 124, job.wait().code)
}

// If the lock is lost during the grace of a job that exceeded its limit, the job is killed before other
// processes can acquire the lock.
func TestLostInTheGraceOfMaxRuntime(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	job := s.start(append([]string{"run", "-n", "x", "--ttl", "5s", "--max-runtime", ample, "--grace", "1h"}, stubborn...)...)
	job.Expect("ready")
	job.Err.Expect(t, "the limit of --max-runtime")
	s.breakUnder("x")
	require.Equal(t, 124, job.wait().code)
}
