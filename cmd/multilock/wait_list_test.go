//go:build unix

package main_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The group's own list says what to wait for: comments and barriers are no jobs, results of other
// jobs do not count, and a list may come later.
func TestWaitForTheList(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.must("run", "-q", "-n", "other", "--once", "--", "true")
	none := s.run("wait", "--list", "--timeout", "3s") // a busy machine looks once in that time
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

// Nothing runs below a barrier if a job above it has failed, so nothing there is waited for.
func TestWaitForAListThatEndsAtABarrier(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	require.Equal(t, 1, s.run("batch", "-q", s.list("a\texit 3", "BARRIER", "b\ttrue")).code)
	got := s.run("wait", "--list", "--timeout", "1m")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stderr, `job "a" failed`)
}
