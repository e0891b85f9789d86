package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// guarded is a script that locks a file while any of its processes lives. One of them has left its process
// group.
const guarded = `exec 9> %[1]s && flock 9 && { setsid sleep 1000 & } && echo ready > %[1]s.ready && exec sleep 1000`

// beside fails if such a script is still running.
const beside = `flock -n %s true`

// whileStopped stops a runner, as seen on its own or another host, until its job has ended, and another
// process has run the same job.
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

// A stopped runner cannot end its job. Its guard does that before other processes can acquire the lock.
// Rule: guard
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

// A job that its guard has ended has no result.
// Rule: guard, attempts
func TestStoppedRunnersJobHasNotFailed(t *testing.T) {
	t.Parallel()
	s, witness := newStation(t), filepath.Join(t.TempDir(), "w")
	r := s.start("run", "-n", "x", "--ttl", "3s", "--once", "--", "sh", "-c", fmt.Sprintf(guarded, witness))
	s.whileStopped(r, "x", witness)
	require.Equal(t, 122, r.wait().code)
	require.Empty(t, s.committed())
}

// Rule: guard
func TestStoppedBatchsJobsAreEnded(t *testing.T) {
	t.Parallel()
	s, witness := newStation(t), filepath.Join(t.TempDir(), "w")
	r := s.start("batch", "--ttl", "3s", s.list("x\t"+fmt.Sprintf(guarded, witness)))
	s.whileStopped(r, lockOf(1), witness)
	s.eventually("it does the job again", func() bool { return s.besides(witness) })
	r.Signal(syscall.SIGTERM)
	r.Err.Expect(t, "once more ends them")
	r.Signal(syscall.SIGTERM)
	r.wait()
	require.Empty(t, s.committed())
	s.eventually("nobody is left", func() bool { return !s.besides(witness) })
}

// besides reports whether a guarded script is running.
func (s *station) besides(witness string) bool {
	return s.script("sh", fmt.Sprintf(beside, witness)).code != 0
}

// With --on-lost ignore the job is not ended.
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

// setuidCopy makes a copy of a program that runs as root for any user.
func setuidCopy(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("needs %s", program)
	}
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	runs := filepath.Join(forAll(t), program)
	require.NoError(t, os.WriteFile(runs, data, 0o700)) //nolint:gosec // a program
	require.NoError(t, os.Chmod(runs, 0o755|os.ModeSetuid))
	return runs
}

// forAll makes a directory that other users can write.
func forAll(t *testing.T) string {
	t.Helper()
	dir := openToAll(t)
	require.NoError(t, os.Chmod(dir, 0o777))
	return dir
}

// runUnkillable runs a job until its time limit. One of its processes has become another user's, so that even
// SIGKILL fails.
func runUnkillable(t *testing.T, options ...string) (s *station, got ended, survivors []int) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root, to play another user")
	}
	setpriv := setuidCopy(t, "setpriv")
	s = &station{t: t, base: forAll(t), env: []string{"MULTILOCK_TRUST=any"}}
	cmd := s.command(slices.Concat([]string{"run", "-n", "x", "--max-runtime", ample, "--grace", "50ms"}, options, []string{"--", "sh", "-c",
		setpriv + ` --reuid 0 sleep 1000 > /dev/null 2>&1 & echo $! >> pids; wait`})...)
	cmd.Dir = forAll(t)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	got = s.finish(cmd)
	noted, err := os.ReadFile(filepath.Join(cmd.Dir, "pids"))
	require.NoError(t, err)
	for _, pid := range strings.Fields(string(noted)) {
		survivor, err := strconv.Atoi(pid)
		require.NoError(t, err)
		t.Cleanup(func() { _ = syscall.Kill(survivor, syscall.SIGKILL) })
		survivors = append(survivors, survivor)
	}
	return s, got, survivors
}

// Surviving processes may still use what the lock protects.
func TestLockStaysHeldByWhatSurvivesTheKill(t *testing.T) {
	t.Parallel()
	s, got, survivors := runUnkillable(t)
	require.Equal(t, 124, got.code, got.stderr)
	require.Contains(t, got.stderr, "still alive after SIGKILL")
	require.Contains(t, got.stderr, `lock "x" stays held`)
	require.Equal(t, "held", s.lock("x").State)
	require.NoError(t, syscall.Kill(survivors[0], syscall.SIGKILL))
	s.eventually("the lock can be taken", func() bool { return s.run("run", "-n", "x", "--", "true").code == 0 })
}

// Another attempt under the same lock would run in parallel with surviving processes.
func TestNoAttemptBesideWhatSurvivesTheKill(t *testing.T) {
	t.Parallel()
	s, got, survivors := runUnkillable(t, "--once", "--retries", "3")
	require.Equal(t, 124, got.code, got.stderr)
	require.NotContains(t, got.stderr, "trying again")
	require.Len(t, survivors, 1)
	require.Equal(t, "held", s.lock("x").State)
	require.Equal(t, 1, s.result("x").Attempt)
}
