package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
)

// On a terminal a bar shows the progress of all hosts and the rate. Ctrl-C does not reach the jobs.
func TestBatchOnATerminal(t *testing.T) {
	t.Parallel()
	s, w := newStation(t), newWitness(t)
	lines, proceed := fifoJobs(t, w, 1, "true")
	list := s.list(append(lines, "b\t"+lines[0][len("job000\t"):], "c\ttrue")...)
	user, r := onTerminal(t, s.command("batch", "-j3", list))
	r.Expect("(1/3) ")
	r.Expect(" jobs/s, about ")
	r.Expect(" left, 2 running here")
	user.Type(ctrlC)
	r.Expect("taking no more jobs")
	require.NoError(t, os.WriteFile(proceed, nil, 0o600))
	r.Expect("3 jobs: 3 done, 3 run here")
	require.Zero(t, r.wait().code)
}

// A host that waits for another host's jobs can be interrupted.
func TestBatchInterruptedWhileWaiting(t *testing.T) {
	t.Parallel()
	s, w := newStation(t), newWitness(t)
	lines, proceed := fifoJobs(t, w, 2, "true")
	list := s.list(lines...)
	alpha := begin(t, s.host("alpha").on("batch", "-j2", "--json", list))
	s.eventually("both jobs run", func() bool { return len(w.ran()) == 2 })
	beta := s.start("batch", "-j2", list)
	beta.Err.Expect(t, " held elsewhere") // or it is trying to acquire the other lock
	beta.Signal(syscall.SIGTERM)
	got := beta.wait()
	require.Equal(t, 143, got.code)
	require.Contains(t, got.stdout, "2 jobs: 0 done, 2 left")
	require.NoError(t, os.WriteFile(proceed, nil, 0o600))
	require.Zero(t, alpha.wait().code)
	require.Len(t, w.ran(), 2)
}

// A host crashes during a batch. Jobs that it committed do not run again. Its other jobs are taken over, and
// run until a result is committed.
func TestBatchSurvivesHost(t *testing.T) {
	t.Parallel()
	s, w := newStation(t), newWitness(t)
	lines, proceed := stallingJobs(t, w)
	list := s.list(lines...)
	args := []string{"batch", "-j4", "--ttl", "5s", "--json", list}
	alpha := begin(t, s.host("alpha").on(args...))
	s.eventually("four jobs of alpha stall", func() bool { return stalling(t, proceed) == 4 })
	s.eventually("what has ended is recorded", func() bool { return len(s.committed()) == len(w.ran())-4 })
	committed, held := s.committed(), len(s.locks())
	require.NoError(t, alpha.Cmd.Process.Kill())
	alpha.wait()
	release(t, proceed)
	beta := s.finish(s.host("beta").on(args...))
	require.Zero(t, beta.code, beta.stderr)
	var v batchView
	require.NoError(t, json.Unmarshal([]byte(beta.stdout), &v))
	require.Equal(t, []int{60, held}, []int{v.Done, v.LocksBroken})
	require.Equal(t, len(committed), v.EndedBefore)

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

// stallingJobs returns sixty jobs, every tenth of which stalls until it is released.
func stallingJobs(t *testing.T, w *witness) (lines []string, dir string) {
	t.Helper()
	dir = t.TempDir()
	for i := range 60 {
		rest := "true"
		if i%10 == 9 {
			rest = fmt.Sprintf("touch %[1]s/stalls-$MULTILOCK_SEQ; until test -e %[1]s/go; do sleep 0.01; done", dir)
		}
		lines = append(lines, w.job(fmt.Sprintf("job%03d", i), rest))
	}
	return lines, dir
}

// stalling returns how many jobs stall.
func stalling(t *testing.T, dir string) int {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "stalls-*"))
	require.NoError(t, err)
	return len(found)
}

// release lets the stalled jobs continue.
func release(t *testing.T, dir string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
}

// committed returns the names of the jobs that have a result.
func (s *station) committed() (names []string) {
	s.t.Helper()
	src, err := fslock.Open(fslock.Options{Base: s.base})
	require.NoError(s.t, err)
	defer src.Close()
	records, err := src.Results(s.t.Context())
	require.NoError(s.t, err)
	for _, record := range records {
		r, err := src.Result(s.t.Context(), record)
		require.NoError(s.t, err)
		joblist.EachJob(r, func(name string, _ multilock.Result) { names = append(names, name) })
	}
	return names
}
