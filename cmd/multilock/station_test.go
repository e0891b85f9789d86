//go:build unix

package main_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// watchdog bounds what would otherwise hang. Nothing that passes comes near it.
const watchdog = 30 * time.Second

// poll is the pause between two looks at what a test waits for.
const poll = 5 * time.Millisecond

// station is a base directory and the binary to use it with.
type station struct {
	t    *testing.T
	base string
}

func newStation(t *testing.T) *station {
	t.Helper()
	return &station{t: t, base: t.TempDir()}
}

// ended is how a command ended. It has done so only when nobody has its output
// open any more: that none of a job's processes is left is part of it.
type ended struct {
	code           int
	stdout, stderr string
}

// command prepares the binary, in an environment without any variable of ours.
func (s *station) command(args ...string) *exec.Cmd {
	s.t.Helper()
	cmd := exec.Command(os.Getenv(binaryVariable), args...)
	cmd.Env = append(cleanEnviron(), "MULTILOCK_DIR="+s.base)
	cmd.Dir = s.t.TempDir()
	cmd.WaitDelay = watchdog
	return cmd
}

// cleanEnviron has the binary's directory in its PATH.
func cleanEnviron() []string {
	env := slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return strings.HasPrefix(entry, "MULTILOCK_") || strings.HasPrefix(entry, "PATH=")
	})
	return append(env, "PATH="+filepath.Dir(os.Getenv(binaryVariable))+":"+os.Getenv("PATH"))
}

// run runs the binary to its end.
func (s *station) run(args ...string) ended {
	s.t.Helper()
	return s.finish(s.command(args...))
}

// script runs a shell script that uses the binary.
func (s *station) script(shell, text string) ended {
	s.t.Helper()
	cmd := s.command()
	cmd.Path, cmd.Args = shell, []string{shell, "-c", text}
	path, err := exec.LookPath(shell)
	if err != nil {
		s.t.Skipf("needs %s", shell)
	}
	cmd.Path = path
	return s.finish(cmd)
}

func (s *station) finish(cmd *exec.Cmd) ended {
	s.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(s.t, cmd.Start())
	guarded(s.t, cmd)
	return ended{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// guarded waits for the end of a command, and kills it if that does not come.
func guarded(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	timer := time.AfterFunc(watchdog, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	require.True(t, timer.Stop(), "%v did not end", cmd.Args)
	require.NotErrorIs(t, err, exec.ErrWaitDelay, "somebody has the output of %v still open", cmd.Args)
}

// must requires success and returns the standard output.
func (s *station) must(args ...string) string {
	s.t.Helper()
	got := s.run(args...)
	require.Zero(s.t, got.code, "%v: %s", args, got.stderr)
	return got.stdout
}

// lockView is what the tests read of a lock in the JSON of several commands.
type lockView struct {
	Name, State, Why, Token, Host, User, Command string
	PID                                          int
	TTL                                          float64  `json:"ttl_seconds"`
	Age                                          *float64 `json:"age_seconds"`
}

// lock looks at one lock.
func (s *station) lock(name string) lockView {
	s.t.Helper()
	var report struct{ Locks []lockView }
	require.NoError(s.t, json.Unmarshal([]byte(s.must("status", "--json", name)), &report))
	require.Len(s.t, report.Locks, 1)
	return report.Locks[0]
}

// eventually waits for what comes in its own time.
func (s *station) eventually(what string, condition func() bool) {
	s.t.Helper()
	require.Eventually(s.t, condition, watchdog, poll, what)
}

func (s *station) eventuallyFree(name string) {
	s.t.Helper()
	s.eventually("lock "+name+" becomes free", func() bool { return s.lock(name).State == "free" })
}

// staged is how many attempts at locks there are in the base directory.
func (s *station) staged() int {
	entries, err := os.ReadDir(filepath.Join(s.base, ".multilock", "staging"))
	if err != nil {
		return 0
	}
	return len(entries)
}

// eventuallyWaiting returns when somebody waits for a lock.
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

// event is what the tests read of the history.
type event struct {
	What    string `json:"event"`
	Name    string
	Token   string
	Command string
	Why     string
	Exit    *int
	Signal  string
	Fence   uint64
	By      struct{ PID int }
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

// happened is the events' kinds, in order.
func happened(events []event) []string {
	what := []string{}
	for _, e := range events {
		what = append(what, e.What)
	}
	return what
}
