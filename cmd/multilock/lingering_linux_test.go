package main_test

import (
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

// setuidCopy makes a copy of a program that runs as root whoever starts it.
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

// forAll makes a directory that other users can write to.
func forAll(t *testing.T) string {
	t.Helper()
	dir := openToAll(t)
	require.NoError(t, os.Chmod(dir, 0o777))
	return dir
}

// runUnkillable runs a job of which a part has become another user, so that not even
// SIGKILL ends it, until it runs into its limit.
func runUnkillable(t *testing.T, options ...string) (s *station, got ended, survivors []int) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root, to play another user")
	}
	setpriv := setuidCopy(t, "setpriv")
	s = &station{t: t, base: forAll(t)}
	cmd := s.command(slices.Concat([]string{"run", "-n", "x", "--max-runtime", "500ms", "--grace", "50ms"}, options, []string{"--", "sh", "-c",
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

// What survives may still be at work on what the lock protects.
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

// Under the same lock another attempt would be at work beside it.
func TestNoAttemptBesideWhatSurvivesTheKill(t *testing.T) {
	t.Parallel()
	s, got, survivors := runUnkillable(t, "--once", "--retries", "3")
	require.Equal(t, 124, got.code, got.stderr)
	require.NotContains(t, got.stderr, "trying again")
	require.Len(t, survivors, 1)
	require.Equal(t, "held", s.lock("x").State)
	require.Equal(t, 1, s.result("x").Attempt)
}
