//go:build unix

package main_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBatchHalt(t *testing.T) {
	t.Parallel()
	s, w := newStation(t), newWitness(t)
	v, got := s.batch("-j1", "--halt", "soon,fail=10%", s.list(w.jobs(20, "false")...))
	require.Equal(t, 1, got.code)
	require.Equal(t, []int{0, 2, 18, 2}, []int{v.Done, v.Failed, v.Left, v.Ran})
	require.Len(t, w.ran(), 2)
	require.Contains(t, got.stderr, "halted after 0 successes and 2 failures")

	ready := filepath.Join(t.TempDir(), "ready")
	require.NoError(t, syscall.Mkfifo(ready, 0o600))
	v, got = s.batch("-g", "now", "-j2", "--halt", "now,success=1", s.list("echo >"+ready+"; sleep 1000", "read x <"+ready))
	require.Zero(t, got.code, "it has what it was to wait for")
	require.Equal(t, []int{1, 0, 1}, []int{v.Done, v.Failed, v.Left})
}

func TestBatchTimeout(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	v, got := s.batch("--timeout", "100ms", s.list("sleep 1000 & sleep 1000"))
	require.Equal(t, 1, got.code)
	require.Equal(t, 124, v.Failures[0].Exit)
	require.Equal(t, "it ran for longer than --timeout", v.Failures[0].Why)
}

// fifoJobs are jobs that say that they run, and go on when they are told.
func fifoJobs(t *testing.T, w *witness, n int, rest string) (lines []string, proceed string) {
	t.Helper()
	proceed = filepath.Join(t.TempDir(), "proceed")
	return w.jobs(n, `while ! test -e `+proceed+`; do sleep 0.01; done; `+rest), proceed
}

// The first SIGINT lets those that run end.
func TestBatchInterruptedOnce(t *testing.T) {
	t.Parallel()
	s, w := newStation(t), newWitness(t)
	lines, proceed := fifoJobs(t, w, 5, "true")
	r := s.start("batch", "-j2", s.list(lines...))
	s.eventually("two jobs run", func() bool { return len(w.ran()) == 2 })
	r.Signal(os.Interrupt)
	r.Err.Expect(t, "taking no more jobs")
	require.NoError(t, os.WriteFile(proceed, nil, 0o600))
	got := r.wait()
	require.Equal(t, -1, got.code, "it dies of the signal, as shells want it")
	require.Contains(t, got.stdout, "5 jobs: 2 done, 3 left, 2 run here")
	require.Len(t, w.ran(), 2)
	v, _ := s.batch(s.list(lines...))
	require.Equal(t, []int{5, 2, 3}, []int{v.Done, v.Before, v.Ran})
	require.Len(t, w.ran(), 5)
}

// The second one ends them; they have not failed, and run again.
func TestBatchInterruptedTwice(t *testing.T) {
	t.Parallel()
	s, w := newStation(t), newWitness(t)
	lines, proceed := fifoJobs(t, w, 3, "true")
	r := s.start("batch", "-j2", s.list(lines...))
	s.eventually("two jobs run", func() bool { return len(w.ran()) == 2 })
	r.Signal(syscall.SIGTERM)
	r.Err.Expect(t, "taking no more jobs")
	r.Signal(syscall.SIGTERM)
	got := r.wait()
	require.Equal(t, 143, got.code)
	require.Contains(t, got.stdout, "3 jobs: 0 done, 3 left")
	require.NoError(t, os.WriteFile(proceed, nil, 0o600))
	v, again := s.batch(s.list(lines...))
	require.Zero(t, again.code, again.stderr)
	require.Equal(t, []int{3, 0, 3}, []int{v.Done, v.Before, v.Ran})
	require.Len(t, w.ran(), 5)
}
