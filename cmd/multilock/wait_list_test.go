//go:build unix

package main_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The group's list defines the jobs to wait for: comments and barriers are not jobs, results of other jobs do
// not count, and the list may appear later.
func TestWaitForTheList(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.must("run", "-q", "-n", "other", "--once", "--", "true")
	none := s.run("wait", "--list", "--timeout", "3s") // enough for one poll on a busy machine
	require.Equal(t, 124, none.code)
	require.Contains(t, none.stderr, "the group has no list of jobs yet")

	early := s.start("wait", "--list", "--poll", "50ms")
	list := s.list("# a comment", "", "a\ttrue", "BARRIER", "NEEDS cpus=1", "b\ttrue")
	s.must("batch", "-q", list)
	require.Zero(t, early.wait().code)
	require.Contains(t, s.must("wait", "--list", "--json"), `"done": 2`)

	longer := s.list("# a comment", "", "a\ttrue", "BARRIER", "NEEDS cpus=1", "b\ttrue", "c\texit 3")
	require.Equal(t, 1, s.run("batch", "-q", "--add", longer).code)
	require.Equal(t, 1, s.run("wait", "--list").code)
}

// A waiter does not wait for a job that is removed from the list meanwhile.
func TestWaitForAListThatIsReplaced(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	require.Zero(t, s.run("batch", "-q", "-j1", "--halt", "soon,done=1", s.list("a\ttrue", "b\ttrue")).code)
	waits := s.start("wait", "--list", "--poll", "50ms")
	require.Equal(t, 124, s.run("wait", "--list", "--wait", "1s").code, "b was not begun")
	require.Contains(t, s.must("batch", "--replace", s.list("a\ttrue")), "1 job: 1 done")
	require.Zero(t, waits.wait().code)
}

// No job below a barrier runs if a job above it has failed, so the barrier does not wait for jobs below it.
func TestWaitForAListThatEndsAtABarrier(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	require.Equal(t, 1, s.run("batch", "-q", s.list("a\texit 3", "BARRIER", "b\ttrue")).code)
	got := s.run("wait", "--list", "--timeout", "1m")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stderr, `job "a" failed`)
}
