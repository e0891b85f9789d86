//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/internal/load"
	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/multilock/source"
)

// list writes a list of jobs outside of the base directory.
func (s *station) list(lines ...string) string {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), "jobs")
	require.NoError(s.t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	return path
}

// lockOf returns the lock name of a job in a short list, by its number from 1: each job is its own chunk.
func lockOf(number int) string { return joblist.ChunkName(source.Range{From: number, To: number}) }

// witness is a file outside of the base directory to which jobs append a line.
type witness struct {
	t    *testing.T
	path string
}

func newWitness(t *testing.T) *witness {
	t.Helper()
	return &witness{t, filepath.Join(t.TempDir(), "witness")}
}

func (w *witness) job(name, rest string) string {
	return fmt.Sprintf("%s\techo %s >>%s; %s", name, name, w.path, rest)
}

// jobs returns n jobs that append to the file.
func (w *witness) jobs(n int, rest string) []string {
	var lines []string
	for i := range n {
		lines = append(lines, w.job(fmt.Sprintf("job%03d", i), rest))
	}
	return lines
}

// ran returns the names of the jobs that ran, sorted, with repetitions.
func (w *witness) ran() []string {
	w.t.Helper()
	text, err := os.ReadFile(w.path)
	if !os.IsNotExist(err) {
		require.NoError(w.t, err)
	}
	names := strings.Fields(string(text))
	slices.Sort(names)
	return names
}

func (s *station) logOf(name string) string {
	s.t.Helper()
	return s.run("logs", name).stdout
}

// batchView is the part of the JSON of a batch that the tests read.
type batchView struct {
	Total, Done, Failed, Unfinished, Exit int
	EndedBefore                           int `json:"ended_before"`
	RunHere                               int `json:"run_here"`
	LocksBroken                           int `json:"locks_broken"`
	Failures                              []struct {
		Name, Why, Host, Log, Signal string
		Exit, Attempt                int
	}
}

func (s *station) batch(args ...string) (batchView, ended) {
	s.t.Helper()
	got := s.run(append([]string{"batch", "--json"}, args...)...)
	var v batchView
	require.NoError(s.t, json.Unmarshal([]byte(got.stdout), &v), got.stderr)
	require.Equal(s.t, got.code, v.Exit)
	return v, got
}

func TestBatch(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	list := s.list("first\techo $MULTILOCK_NAME $MULTILOCK_GROUP $MULTILOCK_SEQ $MULTILOCK_ATTEMPT; cat", "", "# not this", "2\ttrue",
		"3\texit 3", "with a space\techo to stderr >&2; exit 4", `killed`+"\t"+`kill -9 $$`)
	got := s.run("batch", "-j2", "--retries", "1", list)
	require.Equal(t, 1, got.code)
	require.Regexp(t, `^5 jobs: 2 done, 3 failed, 8 run here, in \S+\n$`, got.stdout)
	require.Contains(t, got.stderr, `job "3" failed with exit code 3 on `)
	require.Regexp(t, `job "with a space" failed with exit code 4 on \S+ \(attempt 2\); its output: multilock -d \S+ logs 'with a space'`, got.stderr)
	require.Contains(t, got.stderr, `job "killed" failed by signal killed on `)
	require.Equal(t, "first .locks 1 1\n", s.logOf("first"))
	require.Regexp(t, `^to stderr\n=== attempt 2 on \S+ at \S+\nto stderr\n$`, s.logOf("with a space"))
	require.Empty(t, s.logOf("3"), "a silent job has no log")
	require.Equal(t, 1, s.run("logs", "3").code)

	v, again := s.batch("--retries", "1", list)
	require.Equal(t, 1, again.code)
	require.Equal(t, []int{5, 2, 3, 0, 5, 0}, []int{v.Total, v.Done, v.Failed, v.Unfinished, v.EndedBefore, v.RunHere})
	require.Equal(t, "3", v.Failures[0].Name)
	require.Equal(t, 2, v.Failures[0].Attempt)
	require.Contains(t, v.Failures[0].Log, " logs 3")
	require.Equal(t, "killed", v.Failures[2].Signal)
	require.Equal(t, "free", s.lock(lockOf(1)).State)
	require.Zero(t, s.staged())
}

func TestBatchDryRun(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	require.Regexp(t, `(?m)^1 +would run +touch x\n$`, s.must("batch", "-d", s.base, "--dry-run", s.list("touch x")))
	s.requireUntouched()
	s.run("batch", s.list("good\ttrue", "bad\tfalse", "held\ttrue"))
	s.must("clean", "--results", "held")
	held := s.hold(lockOf(3))
	foreseen := s.must("batch", "--dry-run", s.list("good\ttrue", "bad\tfalse", "held\ttrue"))
	require.Regexp(t, `^good +done +true\nbad +failed \(exit 1 on \S+\) +false\nheld +held by \S+ +true\n$`, foreseen)
	held.end()
}

// The list may come from any source, and its jobs may have several lines.
func TestBatchFromStdin(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	cmd := s.command("batch", "-q", "-")
	cmd.Stdin = strings.NewReader("echo one\necho two")
	require.Equal(t, ended{0, "", ""}, s.finish(cmd))
	require.Equal(t, "one\n", s.logOf("1"))
	require.Equal(t, "two\n", s.logOf("2"))

	cmd = s.command("batch", "-q", "-g", "other", "-0", "-")
	cmd.Stdin = strings.NewReader("x\x00echo a\necho b\x00#1\x00# no job\x00\x00printf '\t\r'\x00")
	require.Equal(t, ended{0, "", ""}, s.finish(cmd))
	require.Equal(t, "a\nb\n", s.must("-g", "other", "logs", "x"))
	require.Equal(t, "\t\r", s.must("-g", "other", "logs", "3"))
	require.Contains(t, s.must("-g", "other", "status", "#1"), "done")
}

func TestBatchRefusesABadList(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	empty, twelve := s.list("# nothing"), make([]string, 12)
	for i := range twelve {
		twelve[i] = "a/b\ttrue"
	}
	for args, stderr := range map[string]string{
		"batch " + empty: "batch: there are no jobs in " + empty,
		"batch " + s.list("a\tx", "b\tx", "a\ty", "a/b\tz", "\tw", "c\t "): `line 3: the name "a" is that of line 1; line 4: lock name "a/b": must not contain a slash`,
		"batch " + s.list("c\t "):                 `line 1: "c" has no command`,
		"batch " + s.list("\ttrue"):               `line 1: lock name "": must not be empty`,
		"batch " + s.list("true\x00"):             "line 1: there is a NUL byte in the command; a list with NUL bytes is read with --null",
		"batch " + s.list(twelve...):              "; and 2 more",
		"batch -d /nonexistent " + s.list("true"): "does not exist",
	} {
		got := s.run(strings.Fields(args)...)
		require.Equal(t, 125, got.code, args)
		require.Contains(t, got.stderr, stderr, args)
		require.Empty(t, got.stdout)
		require.Equal(t, 1, strings.Count(got.stderr, "\n"), got.stderr)
	}
	s.requireUntouched()
}

func TestBatchRefusesAnotherList(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.must("batch", s.list("a\ttrue", "b\ttrue"))
	other := s.list("a\ttrue", "b\tfalse")
	got := s.run("batch", other)
	require.Equal(t, 125, got.code)
	require.Contains(t, got.stderr, `a different list of jobs: job 2 is "b\ttrue" there, and "b\tfalse" here; choose another group with -g`)
	require.Contains(t, got.stderr, "multilock -d "+s.base+" clean --results")
	require.Contains(t, s.run("batch", s.list("a\ttrue")).stderr, `a longer list of jobs: job 2, "b\ttrue", is missing here`)
	require.Contains(t, s.run("batch", s.list("a\ttrue", "b\ttrue", "c\ttrue")).stderr, `a shorter list of jobs: job 3, "c\ttrue", is not in it`)
	s.must("clean", "--results")
	require.Equal(t, 1, s.run("batch", other).code)
}

// All output of both streams is stored, even if it is written just before the job's end.
func TestBatchOutput(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.must("batch", s.list("big\thead -c 300000 /dev/zero | tr '\\000' x; echo error >&2; echo end"))
	require.Equal(t, strings.Repeat("x", 300000)+"error\nend\n", s.logOf("big"))
}

// A log that cannot be written causes a warning, but does not make the job fail.
func TestBatchLogInTheWay(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	group := filepath.Join(s.base, ".multilock", "groups", ".locks")
	require.NoError(t, os.MkdirAll(group, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(group, "logs"), nil, 0o600))
	v, got := s.batch(s.list("a\techo hello"))
	require.Equal(t, 1, got.code)
	require.Equal(t, []int{1, 0}, []int{v.Done, v.Failed})
	require.Regexp(t, `is not complete: .*not a directory`, s.run("batch", s.list("a\techo hello")).stderr)
}

// The batch does not wait for background processes of a job.
func TestBatchBackground(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	pid := filepath.Join(t.TempDir(), "pid")
	s.must("batch", s.list("echo before; sleep 1000 & echo $! >"+pid))
	text, err := os.ReadFile(pid)
	require.NoError(t, err)
	require.Equal(t, "before\n", s.logOf("1"))
	var number int
	_, err = fmt.Sscan(string(text), &number)
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(number, syscall.SIGKILL))
}

func TestBatchJoblog(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	joblog := filepath.Join(t.TempDir(), "joblog")
	list := s.list("a\techo hello", "b\texit 3", "c\tkill -9 $$")
	s.run("batch", "-j1", "--joblog", joblog, list)
	s.run("batch", "-g", "more", "--joblog", joblog, s.list("true"))
	text, err := os.ReadFile(joblog)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	require.Equal(t, "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand", lines[0])
	require.Regexp(t, `^1\t\S+\t\d+\.\d{6}\t +\d+\.\d{6}\t0\t0\t0\t0\ttrue$`, lines[4])
	ends := lines[1:4]
	slices.Sort(ends)
	for i, end := range []string{"\t6\t0\t0\techo hello", "\t0\t3\t0\texit 3", "\t0\t0\t9\tkill -9 $$"} {
		require.True(t, strings.HasPrefix(ends[i], fmt.Sprint(i+1, "\t")), ends[i])
		require.True(t, strings.HasSuffix(ends[i], end), ends[i])
	}
}

func TestBatchFence(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.must("batch", "--fence", s.list("echo $MULTILOCK_FENCE"))
	require.Equal(t, "1\n", s.logOf("1"))
}

// No job below a barrier runs before all jobs above it are done. A job named BARRIER is a job.
func TestBatchBarrier(t *testing.T) {
	t.Parallel()
	s, w := newStation(t), newWitness(t)
	broken := filepath.Join(t.TempDir(), "broken")
	require.NoError(t, os.WriteFile(broken, nil, 0o600))
	list := s.list(w.job("a", "sleep 0.3"), w.job("b", "! test -e "+broken), "BARRIER", w.job("BARRIER", ""), w.job("c", ""))
	got := s.run("batch", "-j8", list)
	require.Equal(t, 1, got.code, got.stderr)
	require.Contains(t, got.stderr, "2 jobs behind the barrier after job 2 were not run, because 1 before it failed")
	require.Equal(t, []string{"a", "b"}, w.ran())
	require.Contains(t, s.must("batch", "--dry-run", list), "the jobs above are done before any job below begins")

	require.NoError(t, os.Remove(broken))
	v, got := s.batch("-j8", "--retry-failed", list)
	require.Zero(t, got.code, got.stderr)
	require.Equal(t, 4, v.Done)
	require.Equal(t, []string{"BARRIER", "a", "b", "b", "c"}, w.ran())
	s.must("wait", "--members-from", list)
}

// A busy host starts no job, and reports that. It ends after another host, not busy, has run the jobs.
func TestBatchOnABusyHost(t *testing.T) {
	t.Parallel()
	s, w := newStation(t), newWitness(t)
	list := s.list(w.jobs(3, "")...)
	for words, says := range map[string]string{"--memfree 1000T": "would never begin a job", "--memfree 8X": "write a size", "--load none": "write a number"} {
		got := s.run(slices.Concat([]string{"batch"}, strings.Fields(words), []string{list})...)
		require.Equal(t, 125, got.code)
		require.Contains(t, got.stderr, says)
	}
	memory, err := load.ReadMemory()
	require.NoError(t, err)
	busy := s.start("batch", "--memfree", strconv.FormatUint(memory.Total-1, 10), list)
	busy.Err.Expect(t, "0 running here, too busy for more (")
	require.Empty(t, w.ran())
	s.must("batch", "--load", "100000", "--memfree", "1K", list)
	require.Len(t, w.ran(), 3)
	require.Zero(t, busy.wait().code)
}
