package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
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

// A part of the job that not even SIGKILL ends, here because it has become
// another user, may still be at work on what the lock protects.
func TestLockStaysHeldByWhatSurvivesTheKill(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to play another user")
	}
	t.Parallel()
	setpriv := setuidCopy(t, "setpriv")
	s := &station{t: t, base: forAll(t)}
	cmd := s.command("run", "-n", "x", "--max-runtime", "500ms", "--grace", "50ms", "--", "sh", "-c",
		setpriv+` --reuid 0 sleep 1000 > /dev/null 2>&1 & echo $! > pid; wait`)
	cmd.Dir = forAll(t)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	got := s.finish(cmd)
	noted, err := os.ReadFile(filepath.Join(cmd.Dir, "pid"))
	require.NoError(t, err)
	survivor, err := strconv.Atoi(strings.TrimSpace(string(noted)))
	require.NoError(t, err)
	defer syscall.Kill(survivor, syscall.SIGKILL)

	require.Equal(t, 124, got.code, got.stderr)
	require.Contains(t, got.stderr, "still alive after SIGKILL")
	require.Contains(t, got.stderr, `lock "x" stays held`)
	require.Equal(t, "held", s.lock("x").State)
	require.NoError(t, syscall.Kill(survivor, syscall.SIGKILL))
	s.eventually("the lock can be taken", func() bool { return s.run("run", "-n", "x", "--", "true").code == 0 })
}
