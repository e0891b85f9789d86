//go:build unix

package main_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/clitest"
)

func TestBatchHalt(t *testing.T) {
	t.Parallel()
	s, w := newStation(t), newWitness(t)
	v, got := s.batch("-j1", "--halt", "soon,fail=10%", s.list(w.jobs(20, "false")...))
	require.Equal(t, 1, got.code)
	require.Equal(t, []int{0, 2, 18, 2}, []int{v.Done, v.Failed, v.Unfinished, v.RunHere})
	require.Len(t, w.ran(), 2)
	require.Contains(t, got.stderr, "halted: 0 done, 2 failed")

	ready := filepath.Join(t.TempDir(), "ready")
	require.NoError(t, syscall.Mkfifo(ready, 0o600))
	v, got = s.batch("-g", "now", "-j2", "--halt", "now,success=1", s.list("echo >"+ready+"; sleep 1000", "read x <"+ready))
	require.Zero(t, got.code, "it has what it was to wait for")
	require.Equal(t, []int{1, 0, 1}, []int{v.Done, v.Failed, v.Unfinished})
}

func TestBatchTimeout(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	v, got := s.batch("--timeout", "100ms", s.list("sleep 1000 & sleep 1000"))
	require.Equal(t, 1, got.code)
	require.Equal(t, 124, v.Failures[0].Exit)
	require.Equal(t, "it ran for longer than --max-runtime", v.Failures[0].Why)
}

// fifoJobs returns jobs that report when they run, and continue on request.
func fifoJobs(t *testing.T, w *witness, n int, rest string) (lines []string, proceed string) {
	t.Helper()
	proceed = filepath.Join(t.TempDir(), "proceed")
	return w.jobs(n, `while ! test -e `+proceed+`; do sleep 0.01; done; `+rest), proceed
}

// The first SIGINT lets running jobs end.
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
	require.Equal(t, []int{5, 2, 3}, []int{v.Done, v.EndedBefore, v.RunHere})
	require.Len(t, w.ran(), 5)
}

// The second SIGINT ends the running jobs. They have not failed, and run again.
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
	require.Equal(t, []int{3, 0, 3}, []int{v.Done, v.EndedBefore, v.RunHere})
	require.Len(t, w.ran(), 5)
}

// pidJobs returns jobs that write their process IDs to files, and continue on request.
func pidJobs(t *testing.T, prefix string, names ...string) (lines []string, dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range names {
		lines = append(lines, name+"\t"+prefix+"echo $$ >"+dir+"/new."+name+" && mv "+dir+"/new."+name+" "+dir+"/"+name+
			"; while ! test -e "+dir+"/proceed; do sleep 0.01; done")
	}
	return lines, dir
}

// terminate signals a job as a scheduler does.
func terminate(t *testing.T, dir, name string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGTERM))
}

func (s *station) eventuallyThere(dir string, names ...string) {
	s.t.Helper()
	for _, name := range names {
		s.eventually("job "+name+" runs", func() bool {
			_, err := os.Stat(filepath.Join(dir, name))
			return err == nil
		})
	}
}

// A scheduler ends an allocation: it sends SIGTERM to all processes, in any order. The jobs have not failed,
// and run again in the next allocation.
func TestBatchEndedWithItsJobs(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		prefix   string
		jobFirst bool
	}{
		"us first":       {"", false},
		"the jobs first": {"", true},
		"jobs that exit": {"trap 'exit 7' TERM; ", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStation(t)
			lines, dir := pidJobs(t, one.prefix, "a", "b")
			list := s.list(lines...)
			r := s.start("batch", "-j2", "--retries", "3", list)
			s.eventuallyThere(dir, "a", "b")
			if one.jobFirst {
				terminate(t, dir, "a")
				terminate(t, dir, "b")
				r.Signal(syscall.SIGTERM)
			} else {
				r.Signal(syscall.SIGTERM)
				r.Err.Expect(t, "taking no more jobs")
				terminate(t, dir, "a")
				terminate(t, dir, "b")
			}
			got := r.wait()
			require.Equal(t, 143, got.code, got.stderr)
			require.Contains(t, got.stdout, "2 jobs: 0 done, 2 left")
			require.Contains(t, got.stderr, `job "a" was terminated; no result is recorded, so it will run again`)
			require.Empty(t, s.history(), "no failure is written down, and no attempt is used up")

			require.NoError(t, os.WriteFile(filepath.Join(dir, "proceed"), nil, 0o600))
			v, again := s.batch("-j2", list)
			require.Zero(t, again.code, again.stderr)
			require.Equal(t, []int{2, 0, 2}, []int{v.Done, v.EndedBefore, v.RunHere})
		})
	}
}

// A job has failed if a user terminated only the job, and not the batch. A job that succeeds in spite of the
// signal is done.
func TestBatchWhoseJobIsEnded(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	lines, dir := pidJobs(t, "", "a", "b")
	r := s.start("batch", "-j2", s.list(lines...))
	s.eventuallyThere(dir, "a", "b")
	terminate(t, dir, "a")
	s.eventually("the failure is recorded", func() bool { return s.result("a").State == "failed" })
	r.Signal(syscall.SIGTERM)
	r.Err.Expect(t, "taking no more jobs")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "proceed"), nil, 0o600))
	got := r.wait()
	require.Equal(t, 1, got.code, got.stderr)
	require.Contains(t, got.stdout, "2 jobs: 1 done, 1 failed")
	require.Equal(t, "done", s.result("b").State)
}

// After a broken connection no process reads the messages. The jobs and their locks are not affected.
func TestBatchWithoutReader(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	lines, dir := pidJobs(t, "", "a")
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, reader.Close())
	cmd := s.command("batch", s.list(lines...))
	cmd.Stdout, cmd.Stderr = writer, writer
	require.NoError(t, cmd.Start())
	r := clitest.Adopt(t, cmd, nil, nil, nil)
	require.NoError(t, writer.Close())
	s.eventuallyThere(dir, "a")
	r.Signal(syscall.SIGTERM) // this makes it write a message
	require.NoError(t, os.WriteFile(filepath.Join(dir, "proceed"), nil, 0o600))
	r.Wait()
	require.Equal(t, "done", s.result("a").State)
	require.Equal(t, "free", s.lock(lockOf(1)).State)
}
