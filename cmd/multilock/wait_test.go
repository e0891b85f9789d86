//go:build unix

package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/clitest"
)

// waitView is what the tests read of "wait --json".
type waitView struct {
	Open, OK          bool
	Done, Short, Exit int
	Failed            []struct {
		Name, Host, Why string
		Exit, Attempt   int
	}
	Crashed, Held []clitest.Lock
	Missing       []string
	Error         string
}

// waitJSON runs "wait" to its end.
func (s *station) waitJSON(args ...string) waitView {
	s.t.Helper()
	got := s.run(append([]string{"wait", "--json", "--poll", "50ms"}, args...)...)
	var view waitView
	require.NoError(s.t, json.Unmarshal([]byte(got.stdout), &view), got.stderr)
	require.Equal(s.t, got.code, view.Exit)
	return view
}

func TestWaitPassesIfNothingIsHeld(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	require.Equal(t, ended{}, s.run("wait", "--settle", "0"))
	require.Equal(t, ended{}, s.run("wait"))
}

func TestWaitForMembersThatHaveNotBegun(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	waiting := s.start("wait", "--members", "a,b", "--members", "c", "--poll", "50ms", "-v")
	for _, name := range []string{"a", "b", "c"} {
		s.must("run", "--once", "-n", name, "--", "true")
	}
	got := waiting.wait()
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stderr, "nothing is left to wait for")
	require.Equal(t, 3, s.waitJSON("--members", "a,b,c").Done, "what is done stays done")
}

func TestWaitForANumber(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	waiting := s.start("wait", "--expect", "2", "--poll", "50ms", "-q")
	s.must("run", "--once", "-n", "a", "--", "true")
	late := s.hold("late", "--once")
	require.Zero(t, late.end().code)
	require.Equal(t, ended{}, waiting.wait())
	got := s.run("wait", "--expect", "3", "--timeout", "200ms")
	require.Equal(t, 124, got.code)
	require.Contains(t, got.stderr, "1 results are missing")
}

// Names come from a list, or from the lines of a batch.
func TestWaitForMembersOfAFile(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	for _, name := range []string{"a", "with space", "b"} {
		s.must("run", "--once", "-n", name, "--", "true")
	}
	list := filepath.Join(t.TempDir(), "list")
	require.NoError(t, os.WriteFile(list, []byte("# jobs\na\n\nwith space\techo some # command\tx\r\nb\r\n"), 0o600))
	require.Equal(t, 3, s.waitJSON("--members-from", list).Done)
	cmd := s.command("wait", "--members-from", "-", "--members", "a", "--timeout", "200ms", "--poll", "50ms")
	cmd.Stdin = strings.NewReader("b\nmissing\n")
	got := s.finish(cmd)
	require.Equal(t, 124, got.code)
	require.Contains(t, got.stderr, "no final result yet of 1: missing")
}

// When the time is over it says who holds what.
func TestWaitSaysWhoHolds(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	job := s.hold("a", "--once")
	got := s.run("wait", "--timeout", "300ms")
	require.Equal(t, 124, got.code)
	require.Contains(t, got.stderr, `lock "a" is held: `)
	require.Contains(t, got.stderr, "the time to wait is over")
	view := s.waitJSON("--members", "a,b", "--timeout", "300ms")
	require.False(t, view.Open)
	require.Equal(t, []string{"a", "b"}, view.Missing)
	require.Len(t, view.Held, 1)
	require.Equal(t, "held", s.lock("a").State, "waiting changes nothing")
	require.Zero(t, job.end().code)
}

func TestSignalEndsAWait(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		s := newStation(t)
		s.hold("a")
		waiting := s.start("wait", "--poll", "1h")
		waiting.Err.Expect(t, "waiting")
		waiting.Signal(sig)
		require.Equal(t, 128+int(sig), waiting.wait().code)
	}
}

// A job that died is not done: it is found out on its host at once, with the
// evidence, and makes the barrier fail.
func TestWaitFindsTheDead(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.dead("a")
	view := s.waitJSON()
	require.Equal(t, 1, view.Exit)
	require.Len(t, view.Crashed, 1)
	require.Equal(t, "a", view.Crashed[0].Name)
	require.Regexp(t, "no longer exists|has ended", view.Crashed[0].Why)
	require.Equal(t, []string{"acquired", "broke"}, happened(s.history("a")))
	s.dead("b")
	got := s.run("wait")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stderr, `job "b" died: it was run by `)
}
