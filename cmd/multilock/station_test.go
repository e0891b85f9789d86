//go:build unix

package main_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/clitest"
)

const (
	watchdog = clitest.Watchdog
	// poll is the polling interval of tests.
	poll = 5 * time.Millisecond
)

// station is a base directory with the binary to use it.
type station struct {
	t    *testing.T
	base string
	env  []string
}

func newStation(t *testing.T) *station {
	t.Helper()
	return &station{t: t, base: t.TempDir()}
}

// command prepares the binary, with the usual group, which batch requires, as the only variable of multilock
// in its environment.
func (s *station) command(args ...string) *exec.Cmd {
	s.t.Helper()
	return clitest.Command(s.t, append([]string{"MULTILOCK_DIR=" + s.base, "MULTILOCK_GROUP=.locks"}, s.env...), args...)
}

// run runs the binary until it ends.
func (s *station) run(args ...string) ended {
	s.t.Helper()
	return s.finish(s.command(args...))
}

// script runs a shell script that uses the binary.
func (s *station) script(shell, text string) ended {
	s.t.Helper()
	return s.finish(clitest.Shell(s.t, s.command(), shell, text))
}

func (s *station) finish(cmd *exec.Cmd) ended {
	s.t.Helper()
	r := running{clitest.Run(s.t, cmd), s.t}
	return r.wait()
}

// must requires success and returns the standard output.
func (s *station) must(args ...string) string {
	s.t.Helper()
	got := s.run(args...)
	require.Zero(s.t, got.code, "%v: %s", args, got.stderr)
	return got.stdout
}

// lock inspects one lock.
func (s *station) lock(name string) clitest.Lock {
	s.t.Helper()
	found := s.locks(name)
	require.Len(s.t, found, 1)
	return found[0]
}

// locks returns the locks that "status" lists.
func (s *station) locks(names ...string) []clitest.Lock {
	s.t.Helper()
	got := s.run(append([]string{"status", "--json"}, names...)...)
	require.Contains(s.t, []int{0, 121}, got.code, got.stderr) // 121: a named lock is held
	return clitest.Locks(s.t, got.stdout)
}

// eventually waits for a condition.
func (s *station) eventually(what string, condition func() bool) {
	s.t.Helper()
	require.Eventually(s.t, condition, watchdog, poll, what)
}

func (s *station) eventuallyFree(name string) {
	s.t.Helper()
	s.eventually("lock "+name+" becomes free", func() bool { return s.lock(name).State == "free" })
}

// staged returns the number of attempts at locks in the base directory.
func (s *station) staged() int {
	entries, err := os.ReadDir(filepath.Join(s.base, ".multilock", "staging"))
	if err != nil {
		return 0
	}
	return len(entries)
}

// eventuallyWaiting returns when a process waits for a lock.
func (s *station) eventuallyWaiting() {
	s.t.Helper()
	s.eventually("a contender waits", func() bool { return s.staged() == 1 })
}

func (s *station) eventuallyNobodyWaits() {
	s.t.Helper()
	s.eventually("nothing is staged", func() bool { return s.staged() == 0 })
}

// requireUntouched requires that nothing was created.
func (s *station) requireUntouched() {
	s.t.Helper()
	entries, err := os.ReadDir(s.base)
	require.NoError(s.t, err)
	require.Empty(s.t, entries)
}

// event is the part of a history event that the tests read.
type event struct {
	What    string `json:"event"`
	Name    string
	Token   string
	Command string
	Why     string
	Exit    *int
	JobExit *int `json:"job_exit"`
	Signal  string
	Fence   uint64
	PID     int
}

func (s *station) history(args ...string) []event {
	s.t.Helper()
	var events []event
	lines := json.NewDecoder(strings.NewReader(s.must(append([]string{"history", "--json"}, args...)...)))
	for lines.More() {
		var e event
		require.NoError(s.t, lines.Decode(&e))
		events = append(events, e)
	}
	return events
}

// happened returns the events' kinds, in order.
func happened(events []event) []string {
	what := []string{}
	for _, e := range events {
		what = append(what, e.What)
	}
	return what
}

// running is a command in the background.
type running struct {
	*clitest.Process
	t *testing.T
}

// ended describes how a command ended.
type ended struct {
	code           int
	stdout, stderr string
}

// start starts the binary with a pipe for its standard input.
func (s *station) start(args ...string) *running {
	s.t.Helper()
	return begin(s.t, s.command(args...))
}

func begin(t *testing.T, cmd *exec.Cmd) *running {
	t.Helper()
	return &running{clitest.Start(t, cmd), t}
}

// hold starts a run, and returns when its job runs.
func (s *station) hold(name string, options ...string) *running {
	s.t.Helper()
	args := slices.Concat([]string{"run", "-n", name}, options, []string{"--"}, clitest.WaitingJob())
	r := s.start(args...)
	r.Expect("ready")
	return r
}

// awaitNote waits until the lock's record names its job, which happens after a delay.
func (s *station) awaitNote(name string) {
	s.t.Helper()
	s.eventually("the lock names the job", func() bool { return strings.Contains(s.lock(name).Why, "its job lives") })
}

// awaitTold waits until the history has the start of the job, which happens after a delay.
func (s *station) awaitTold(name string) {
	s.t.Helper()
	s.eventually("the history tells of the job", func() bool { return len(s.history(name)) > 0 })
}

// end closes the standard input, and waits for the command's end.
func (r *running) end() ended {
	r.t.Helper()
	_ = r.In.Close()
	return r.wait()
}

// wait waits for the end of the command, and of all background processes of its jobs.
func (r *running) wait() ended {
	r.t.Helper()
	r.Wait()
	return ended{r.Code(), r.Out.String(), r.Err.String()}
}
