//go:build unix

package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/clitest"
)

// noisy returns a job that prints alternately on both streams, and ends with a code.
func noisy(code string) []string {
	return []string{"--", "sh", "-c", "echo one; echo two >&2; echo three > /dev/stdout; echo four >&2; exit " + code}
}

func TestQuietSuccess(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	require.Equal(t, ended{0, "", ""}, s.run(append([]string{"run", "--quiet-success"}, noisy("0")...)...))
	require.Equal(t, ended{3, "one\nthree\n", "two\nfour\n"}, s.run(append([]string{"run", "--quiet-success"}, noisy("3")...)...))
	require.Equal(t, "free", s.lock("lock").State)
}

// If both streams are the same, as in cron, the output stays in order.
func TestQuietSuccessKeepsTheOrder(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	cmd := s.command(append([]string{"run", "--quiet-success"}, noisy("3")...)...)
	mail, err := os.Create(filepath.Join(t.TempDir(), "mail"))
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = mail, mail
	require.Error(t, cmd.Run())
	require.NoError(t, mail.Close())
	text, err := os.ReadFile(mail.Name())
	require.NoError(t, err)
	require.Equal(t, "one\ntwo\nthree\nfour\n", string(text))
}

// A run has also failed if its job was terminated, or could not be recorded, but not if its last attempt
// succeeds.
func TestQuietSuccessOfOtherEnds(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	long := s.run("run", "--quiet-success", "-n", "long", "--max-runtime", ample, "--", "sh", "-c", "echo begun; exec sleep 1000")
	require.Equal(t, 124, long.code)
	require.Equal(t, "begun\n", long.stdout)

	again := []string{"run", "-q", "--quiet-success", "--retries", "1", "--once"}
	flag := filepath.Join(t.TempDir(), "flag")
	second := []string{"--", "sh", "-c", `echo "attempt $MULTILOCK_ATTEMPT"; [ -e "$0" ] || { touch "$0"; exit 1; }`, flag}
	require.Equal(t, ended{0, "", ""}, s.run(append(append(again, "-n", "second"), second...)...))
	never := s.run(append(again, "-n", "never", "--", "sh", "-c", `echo "attempt $MULTILOCK_ATTEMPT"; exit 4`)...)
	require.Equal(t, ended{4, "attempt 1\nattempt 2\n", ""}, never)
}

// The output is shown after the lock is free, even to a slow reader.
func TestQuietSuccessKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	cmd := s.command("run", "--quiet-success", "-n", "loud", "--", "sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' x; exit 1")
	read, write, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _ = read.Close() })
	told := clitest.NewOutput()
	cmd.Stdout, cmd.Stderr = write, told
	require.NoError(t, cmd.Start())
	require.NoError(t, write.Close())
	r := running{clitest.Adopt(t, cmd, nil, clitest.NewOutput(), told), t}
	s.eventually("the run was told of", func() bool { return len(s.history("loud")) > 1 })
	s.eventuallyFree("loud")
	r.Signal(syscall.SIGTERM)
	got := r.wait()
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stderr, "the command's output was not shown completely, because this process is terminating")
}

// The output of a terminated job is shown, too.
func TestQuietSuccessOfAJobThatIsToldToEnd(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	here := filepath.Join(t.TempDir(), "here")
	r := s.start("run", "--quiet-success", "--", "sh", "-c", `echo begun; touch "$0"; exec sleep 1000`, here)
	s.eventually("the job runs", func() bool { _, err := os.Stat(here); return err == nil })
	r.Signal(syscall.SIGTERM)
	require.Equal(t, ended{143, "begun\n", ""}, r.wait())
}

func TestQuietSuccessNeedsAPlace(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.env = []string{"TMPDIR=/nonexistent"}
	got := s.run("run", "--quiet-success", "--", "echo", "ran")
	require.Equal(t, 125, got.code)
	require.Empty(t, got.stdout)
	require.Contains(t, got.stderr, "another directory can be named with TMPDIR")
	require.Equal(t, "free", s.lock("lock").State)
}

// The stored output is removed, and does not use memory.
func TestQuietSuccessLeavesNothing(t *testing.T) {
	t.Parallel()
	s, tmp := newStation(t), t.TempDir()
	s.env = []string{"TMPDIR=" + tmp, "GOMEMLIMIT=20MiB"}
	got := s.run("run", "--quiet-success", "--", "sh", "-c", "yes | head -c 50000000; exit 1")
	require.Equal(t, 1, got.code)
	require.Len(t, got.stdout, 50_000_000)
	require.Equal(t, 25_000_000, strings.Count(got.stdout, "y\n"))
	left, err := os.ReadDir(tmp)
	require.NoError(t, err)
	require.Empty(t, left)
}
