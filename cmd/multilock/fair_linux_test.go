package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// line returns the queue for the lock x, by the process IDs in the tickets.
func (s *station) line() (tickets []string) {
	s.t.Helper()
	found, err := filepath.Glob(filepath.Join(s.base, ".multilock", "groups", ".locks", "queue", "x", "*", "*.locked"))
	require.NoError(s.t, err)
	return found
}

// standInLine starts runs that queue for the lock x in this order. Each writes its word to a file of the base
// directory.
func (s *station) standInLine(words ...string) (waiting []*running) {
	s.t.Helper()
	for i, word := range words {
		waiting = append(waiting, s.start("run", "-q", "-n", "x", "--fair", "--wait", "1m", "--", "sh", "-c", "echo "+word+" >> "+filepath.Join(s.base, "order")))
		s.eventually(word+" stands in line", func() bool { return len(s.line()) == i+1 })
	}
	return waiting
}

func (s *station) order() []string {
	s.t.Helper()
	order, err := os.ReadFile(filepath.Join(s.base, "order"))
	require.NoError(s.t, err)
	return strings.Fields(string(order))
}

// Queued processes acquire the lock in order. A process that is killed or gives up in the queue blocks no
// other, and the queue is removed.
func TestRunsInLine(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	holder := s.start("run", "-n", "x", "--", "sh", "-c", "echo ready; read line")
	holder.Expect("ready")
	waiting := s.standInLine("a", "b", "c", "d", "e", "f")
	waiting[1].Signal(syscall.SIGKILL)
	waiting[3].Signal(syscall.SIGTERM)
	require.NotZero(t, waiting[1].wait().code)
	require.NotZero(t, waiting[3].wait().code)
	holder.Signal(syscall.SIGTERM)
	holder.wait()
	for _, i := range []int{0, 2, 4, 5} {
		require.Zero(t, waiting[i].wait().code)
	}
	require.Equal(t, []string{"a", "c", "e", "f"}, s.order())
	require.NoDirExists(t, filepath.Join(s.base, ".multilock", "groups", ".locks", "queue", "x"))
}

// The first process in the queue is killed while it tries to acquire the lock: the next one acquires it.
func TestFirstInLineIsKilled(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	holder := s.start("run", "-n", "x", "--", "sh", "-c", "echo ready; read line")
	holder.Expect("ready")
	waiting := s.standInLine("a", "b")
	waiting[0].Signal(syscall.SIGKILL)
	waiting[0].wait()
	holder.Signal(syscall.SIGTERM)
	holder.wait()
	require.Zero(t, waiting[1].wait().code)
	require.Equal(t, []string{"b"}, s.order())
}

// Scripts and slots queue, too.
func TestAcquireAndSlotsInLine(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	token := strings.TrimSpace(s.must("acquire", "-n", "x", "--fair", "--wait", "1m", "--detach", "--ttl", "1h"))
	s.must("release", "-n", "x", "--token", token)
	require.Equal(t, "in\n", s.must("run", "-q", "-n", "x", "--slots", "2", "--fair", "--wait", "1m", "--", "echo", "in"))
	require.Empty(t, s.line())
	require.Equal(t, 0, s.script("sh", `multilock acquire -n x --fair --wait 1m > /dev/null`).code)
}
