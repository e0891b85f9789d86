package main_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

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
