package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// guarded is a script that has a lock on a file as long as any of its processes lives,
// one of which has left its group.
const guarded = `exec 9> %[1]s && flock 9 && { setsid sleep 1000 & } && echo ready > %[1]s.ready && exec sleep 1000`

// beside is one that fails if such a script is still at work.
const beside = `flock -n %s true`

// stopped stops a runner, on one host or as seen by another, until the job that it has
// left alone is over and somebody else has done the same job.
func (s *station) whileStopped(r *running, name, witness string) {
	s.t.Helper()
	s.eventually("the job runs", func() bool { _, err := os.Stat(witness + ".ready"); return err == nil })
	r.helper(s, "__guard")
	token := s.lock(name).Token
	s.t.Cleanup(func() { killCarriers(token) })
	r.Signal(syscall.SIGSTOP)
	next := []string{"run", "-q", "-n", name, "--wait", "40s", "--", "sh", "-c", fmt.Sprintf(beside, witness)}
	got := s.finish(s.host("beta").on(next...))
	require.Zero(s.t, got.code, "the job runs beside that of the next holder: %s", got.stderr)
	require.Zero(s.t, s.run(next...).code)
	r.Signal(syscall.SIGCONT)
	require.Empty(s.t, carriers("MULTILOCK_TOKEN="+token))
}

// A runner that was stopped cannot end its job. Its guard does, before others can have
// the lock.
func TestStoppedRunnersJobIsEnded(t *testing.T) {
	t.Parallel()
	s, witness := newStation(t), filepath.Join(t.TempDir(), "w")
	r := s.start("run", "-n", "x", "--ttl", "3s", "--", "sh", "-c", fmt.Sprintf(guarded, witness))
	s.whileStopped(r, "x", witness)
	got := r.wait()
	require.Equal(t, 122, got.code, got.stderr)
	require.Contains(t, got.stderr, `lock "x" is lost`)
	require.Contains(t, happened(s.history("x")), "lost")
}

// What becomes of a job that its guard has ended is not its result.
func TestStoppedRunnersJobHasNotFailed(t *testing.T) {
	t.Parallel()
	s, witness := newStation(t), filepath.Join(t.TempDir(), "w")
	r := s.start("run", "-n", "x", "--ttl", "3s", "--once", "--", "sh", "-c", fmt.Sprintf(guarded, witness))
	s.whileStopped(r, "x", witness)
	require.Equal(t, 122, r.wait().code)
	require.Empty(t, s.committed())
}

func TestStoppedBatchsJobsAreEnded(t *testing.T) {
	t.Parallel()
	s, witness := newStation(t), filepath.Join(t.TempDir(), "w")
	r := s.start("batch", "--ttl", "3s", s.list("x\t"+fmt.Sprintf(guarded, witness)))
	s.whileStopped(r, "x", witness)
	r.Signal(syscall.SIGTERM) // it would do the job again
	r.wait()
	require.Empty(t, s.committed())
	s.eventually("nobody is left", func() bool { return !s.besides(witness) })
}

// besides reports that a guarded script is at work.
func (s *station) besides(witness string) bool {
	return s.script("sh", fmt.Sprintf(beside, witness)).code != 0
}

// With --on-lost ignore nobody ends the job.
func TestStoppedRunnersJobGoesOnIfItMay(t *testing.T) {
	t.Parallel()
	s, witness := newStation(t), filepath.Join(t.TempDir(), "w")
	r := s.start("run", "-n", "x", "--ttl", "1s", "--on-lost", "ignore", "--", "sh", "-c", fmt.Sprintf(guarded, witness))
	s.eventually("the job runs", func() bool { _, err := os.Stat(witness + ".ready"); return err == nil })
	r.helper(s, "__guard")
	token := s.lock("x").Token
	t.Cleanup(func() { killCarriers(token) })
	r.Signal(syscall.SIGSTOP)
	require.Zero(t, s.finish(s.host("beta").on("run", "-q", "-n", "x", "--wait", "40s", "--", "true")).code)
	require.Len(t, carriers("MULTILOCK_TOKEN="+token), 2)
	killCarriers(token)
	r.Signal(syscall.SIGCONT)
	r.wait()
}
