package main_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Two hosts work through one list; each job runs once.
func TestBatchOverHosts(t *testing.T) {
	t.Parallel()
	s, w := newStation(t), newWitness(t)
	list := s.list(w.jobs(100, "true")...)
	alpha := begin(t, s.host("alpha").on("batch", "-j4", "--json", list))
	beta := begin(t, s.host("beta").on("batch", "-j4", "--json", list))
	ran := 0
	for _, r := range []*running{alpha, beta} {
		got := r.wait()
		require.Zero(t, got.code, got.stderr)
		var v batchView
		require.NoError(t, json.Unmarshal([]byte(got.stdout), &v))
		require.Equal(t, 100, v.Done)
		ran += v.Ran
	}
	require.Equal(t, 100, ran)
	names := w.ran()
	require.Len(t, names, 100)
	require.Len(t, slices.Compact(names), 100)
}

// A host dies in the middle. What it has committed is not run again; what it had
// in its hands is taken over, and runs to a committed result.
func TestBatchSurvivesHost(t *testing.T) {
	t.Parallel()
	s, w := newStation(t), newWitness(t)
	lines, proceed := stallingJobs(t, w)
	list := s.list(lines...)
	args := []string{"batch", "-j4", "--ttl", "2s", "--json", list}
	alpha := begin(t, s.host("alpha").on(args...))
	s.eventually("four jobs of alpha stall", func() bool { return stalling(t, proceed) == 4 })
	committed := s.committed()
	require.NoError(t, alpha.cmd.Process.Kill())
	alpha.wait()
	release(t, proceed)
	beta := s.finish(s.host("beta").on(args...))
	require.Zero(t, beta.code, beta.stderr)
	var v batchView
	require.NoError(t, json.Unmarshal([]byte(beta.stdout), &v))
	require.Equal(t, []int{60, 4}, []int{v.Done, v.TakenOver})
	require.Equal(t, len(committed), v.Before)

	runs := map[string]int{}
	for _, name := range w.ran() {
		runs[name]++
	}
	require.Len(t, runs, 60)
	for _, name := range committed {
		require.Equal(t, 1, runs[name], "%s ran again after its commit", name)
	}
	require.Len(t, w.ran(), 64)
}
