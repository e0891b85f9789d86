package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"syscall"
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

// On a terminal a bar shows how far all hosts have come, and at what rate. Ctrl-C
// does not reach the jobs.
func TestBatchOnATerminal(t *testing.T) {
	t.Parallel()
	s, w := newStation(t), newWitness(t)
	lines, proceed := fifoJobs(t, w, 1, "true")
	list := s.list(append(lines, "b\t"+lines[0][len("job000\t"):], "c\ttrue")...)
	user, r := onTerminal(t, s.command("batch", "-j3", list))
	r.Expect("(1/3) 2 running here, ")
	r.Expect(" jobs/s, ")
	user.types(ctrlC)
	r.Expect("taking no more jobs")
	require.NoError(t, os.WriteFile(proceed, nil, 0o600))
	r.Expect("3 jobs: 3 done, 3 run here")
	require.Zero(t, r.wait().code)
}

// A host that waits for another one's jobs can be interrupted while it does.
func TestBatchInterruptedWhileWaiting(t *testing.T) {
	t.Parallel()
	s, w := newStation(t), newWitness(t)
	lines, proceed := fifoJobs(t, w, 2, "true")
	list := s.list(lines...)
	alpha := begin(t, s.host("alpha").on("batch", "-j2", "--json", list))
	s.eventually("both jobs run", func() bool { return len(w.ran()) == 2 })
	beta := s.start("batch", "-j2", list)
	beta.Err.Expect(t, " held elsewhere") // or it is just trying to get the other one
	beta.Signal(syscall.SIGTERM)
	got := beta.wait()
	require.Equal(t, 143, got.code)
	require.Contains(t, got.stdout, "2 jobs: 0 done, 2 left")
	require.NoError(t, os.WriteFile(proceed, nil, 0o600))
	require.Zero(t, alpha.wait().code)
	require.Len(t, w.ran(), 2)
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
	require.NoError(t, alpha.Cmd.Process.Kill())
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

// Whoever is killed, and whenever: every job is done in the end, and none runs more
// often than processes were killed while they had it.
func TestBatchUnderKills(t *testing.T) {
	t.Parallel()
	const total, width, kills = 300, 3, 6
	s, w := newStation(t), newWitness(t)
	list := s.list(w.jobs(total, "sleep 0.01")...)
	start := func() *running {
		return begin(t, s.command("batch", "-q", "-j", fmt.Sprint(width), "--ttl", "1s", list))
	}
	workers := []*running{start(), start()}
	for n := range kills {
		s.eventually("jobs run", func() bool { return len(w.ran()) >= (n+1)*total/(kills+2) })
		victim := n % len(workers)
		require.NoError(t, workers[victim].Cmd.Process.Kill())
		workers[victim].wait()
		workers[victim] = start()
	}
	for _, r := range workers {
		got := r.wait()
		require.Zero(t, got.code, got.stderr)
	}
	require.Len(t, s.committed(), total)
	ran := w.ran()
	require.LessOrEqual(t, len(ran), total+kills*width)
	require.Len(t, slices.Compact(ran), total)
}
