package main_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Two users of a group, with umasks that deny access to the group, share a queue, and acquire the lock in
// order. If a process of either is killed in the queue, it blocks no other.
func TestUsersOfAGroupInOneLine(t *testing.T) {
	t.Parallel()
	alice, bob := members(t)
	s := alice.station
	holder := alice.start("run", "-n", "x", "--", "sh", "-c", "echo ready; read line")
	holder.Expect("ready")
	var waiting []*running
	for i, m := range []member{bob, alice, bob, alice, bob} {
		word := string(rune('a' + i))
		command := "umask 0; echo " + word + " >> " + filepath.Join(s.base, "order")
		waiting = append(waiting, m.start("run", "-q", "-n", "x", "--fair", "--ttl", "3s", "--wait", "1m", "--", "sh", "-c", command))
		s.eventually(word+" stands in line", func() bool { return len(s.line()) == i+1 })
	}
	for _, i := range []int{1, 2} {
		waiting[i].Signal(syscall.SIGKILL)
		require.NotZero(t, waiting[i].wait().code)
	}
	holder.Signal(syscall.SIGTERM)
	holder.wait()
	for _, i := range []int{0, 3, 4} {
		got := waiting[i].wait()
		require.Zero(t, got.code, got.stderr)
		require.Empty(t, got.stderr)
	}
	require.Equal(t, []string{"a", "d", "e"}, s.order())
	require.NoDirExists(t, filepath.Join(s.base, ".multilock", "groups", ".locks", "queue", "x"))
}
