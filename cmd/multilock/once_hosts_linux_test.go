package main_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Of any number of hosts that are to run a job once, one runs it, and all end well.
func TestOnceOverHosts(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	var started []*running
	names := []string{"alpha", "beta", "gamma", "delta"}
	for _, name := range names {
		args := append([]string{"run", "-n", "x", "--once", "--wait", "forever"}, s.counting("true")...)
		started = append(started, begin(t, s.host(name).on(args...)))
	}
	told := 0
	for _, r := range started {
		got := r.wait()
		require.Zero(t, got.code, got.stderr)
		told += strings.Count(got.stderr, "already ran")
	}
	require.Equal(t, []string{"1"}, s.attempts())
	require.Equal(t, len(names)-1, told)
	require.Contains(t, names, s.result("x").Host)
}

// The attempts of all hosts are counted together, and a crash loses none that
// was recorded.
func TestRetriesOverHosts(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	run := func(end string) []string {
		return slices.Concat([]string{"run", "-n", "x", "--once", "--retries", "2", "--ttl", "2s", "--wait", "forever"}, s.counting(end))
	}
	alpha := begin(t, s.host("alpha").on(run(`test "$MULTILOCK_ATTEMPT" = 1 && exit 5; echo ready; exec cat`)...))
	alpha.Expect("ready") // its second attempt
	require.NoError(t, alpha.Cmd.Process.Kill())
	alpha.wait()
	require.Equal(t, "retry", s.result("x").State)
	require.Regexp(t, `(?m)^0 done, 1 failed and to be tried again: x \(exit 5 on alpha, `, s.must("status"))

	beta := s.finish(s.host("beta").on(run("exit 6")...))
	require.Equal(t, 6, beta.code, beta.stderr)
	require.Equal(t, []string{"1", "2", "2", "3"}, s.attempts())
	gamma := s.finish(s.host("gamma").on(run("true")...))
	require.Equal(t, 6, gamma.code)
	require.Contains(t, gamma.stderr, "exit 6 on beta")
	require.Len(t, s.attempts(), 4)
}

// A tick is one for all hosts.
func TestEveryOverHosts(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	for _, name := range []string{"alpha", "beta", "alpha"} {
		args := append([]string{"run", "-n", "x", "--every", "10000d"}, s.counting("true")...)
		require.Zero(t, s.finish(s.host(name).on(args...)).code)
	}
	require.Equal(t, []string{"1"}, s.attempts())
	require.Equal(t, "alpha", s.result("x").Host)
}
