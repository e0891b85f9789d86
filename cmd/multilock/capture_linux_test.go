package main_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A run's output goes to its own streams, and is found again by the lock's name and the run's number, which
// is in the history.
func TestCapturedRun(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	require.Equal(t, ended{3, "one\nthree\n", "two\nfour\n"}, s.run(append([]string{"run", "-n", "a", "--capture"}, noisy("3")...)...))
	s.must("run", "-n", "a", "--capture", "--", "true")
	s.must("run", "-n", "a", "--", "echo", "not captured")
	s.must("run", "-n", "a", "--capture", "--", "echo", "last")

	require.Equal(t, "last\n", s.must("logs", "-q", "a"))
	got := s.run("logs", "a", "--run", "-1")
	require.Empty(t, got.stdout)
	require.Regexp(t, `^multilock: run 2 of "a" on \S+, began \S+ \S+: exit 0\n$`, got.stderr)
	require.Contains(t, s.must("history", "a"), "exit 3, held ")
	got = s.run("logs", "a", "--run", "1")
	require.Equal(t, "one\nthree\n", got.stdout)
	require.Contains(t, got.stderr, "two\nfour\n")
	require.Contains(t, got.stderr, "run 1 of")
	require.Contains(t, got.stderr, ": exit 3\n")
	require.Contains(t, s.must("history", "a", "--event", "released"), "fence 1,")
	require.Regexp(t, `(?m)^run 4 +a +1 +5 `, s.must("logs"))
	require.Contains(t, s.run("logs", "a", "--run", "3").stderr, "3 runs are, from run 1 to run 4")
	require.Equal(t, 1, s.run("logs", "none", "--run", "1").code)
	require.Equal(t, 125, s.run("logs", "--run", "1").code)
	got = s.run("logs", "-q", "none", "a", "--run", "4")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stdout, "last\n")
}

// With --quiet-success the output is shown if the run failed, and goes to the file of --log; it is captured
// in any case.
func TestCapturedBesideOthers(t *testing.T) {
	t.Parallel()
	s, log := newStation(t), filepath.Join(t.TempDir(), "log")
	require.Equal(t, ended{0, "", ""}, s.run("run", "-n", "a", "--capture", "--quiet-success", "--", "echo", "x"))
	require.Equal(t, "x\n", s.must("logs", "-q", "a"))
	require.Equal(t, ended{0, "", ""}, s.run("run", "-n", "a", "--capture", "--log", log, "--", "echo", "y"))
	requireLogged(t, "y\n", log)
	require.Equal(t, "y\n", s.must("logs", "-q", "a"))
}

// All attempts of a run are shown, and overdue names the command that shows a failed job's output.
func TestCapturedFailure(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	hook := `echo "$MULTILOCK_LOG_COMMAND"`
	got := s.run("run", "-q", "-n", "a", "--once", "--retries", "1", "--capture", "--on-failure", hook, "--", "sh", "-c", "echo oops; exit 7")
	require.Equal(t, 7, got.code)
	require.Regexp(t, `logs a --run 1\n$`, got.stderr)
	require.Regexp(t, `^oops\n=== attempt 2 on \S+ at \S+\noops\n$`, s.must("logs", "-q", "a"))
	require.Regexp(t, `^==> a: failed \(exit 7 on \S+\) <==\noops\n`, s.must("logs", "--failed"))

	s.run("run", "-q", "-n", "b", "--once", "--", "false")
	overdue := s.run("overdue", "-q")
	require.Equal(t, 2, overdue.code)
	lines := strings.Split(overdue.stdout, "\n")
	require.Equal(t, []string{"output of a: multilock -d " + s.base + " logs a", ""}, lines[1:], "nothing is kept of b")
	command, _ := strings.CutPrefix(lines[1], "output of a: ")
	require.Contains(t, s.script("sh", command).stdout, "oops\n")
}

// A killed run's output is shown, with a message that it is incomplete, and --follow ends.
func TestCapturedAndKilled(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	victim := s.start("run", "-n", "a", "--ttl", "4s", "--capture", "--", "sh", "-c", "echo begun; exec sleep 1000")
	victim.Expect("begun\n")
	s.eventually("the output is visible", func() bool { return s.run("logs", "-q", "a").stdout == "begun\n" })
	require.Contains(t, s.run("logs", "a").stderr, "it has not ended")
	require.Equal(t, "no output to remove\n", s.must("clean", "--captured"), "its holder lives")
	follower := s.start("logs", "-f", "a")
	follower.Expect("begun\n")
	victim.Signal(syscall.SIGKILL)
	victim.wait()
	got := follower.end()
	require.Equal(t, 0, got.code)
	require.Contains(t, got.stderr, "the output is cut")
	require.Contains(t, s.run("logs", "a").stderr, "the output is cut")
	s.must("run", "-n", "a", "--wait", "1m", "--capture", "--", "echo", "next")
	require.Equal(t, "begun\n", s.must("logs", "-q", "a", "--run", "-1"))
}

// If nothing can be captured, the job runs, and its lock is released.
func TestNothingCanBeCaptured(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.must("run", "-n", "a", "--", "true")
	require.NoError(t, os.WriteFile(s.private("runs"), nil, 0o600))
	got := s.run("run", "-n", "a", "--once", "--capture", "--", "echo", "x")
	require.Equal(t, ended{0, "x\n", got.stderr}, got)
	require.Contains(t, got.stderr, "the command's output was not captured as a whole: ")
	require.Equal(t, "free", s.lock("a").State)
	require.Zero(t, s.result("a").Exit)
	require.Equal(t, 125, s.run("run", "-n", "a", "--capture", "--source", "cook+file:"+s.base, "--", "true").code)
	require.Equal(t, 125, s.run("run", "-n", "a", "--capture", "--capture-size", "1K", "--", "true").code)
}

// Output of ended runs is removed on request, and the directories with it.
func TestCapturedIsCleaned(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	for _, name := range []string{"a", "a", "b"} {
		s.must("run", "-n", name, "--capture", "--", "echo", name)
	}
	require.NoError(t, os.WriteFile(s.private("runs", "b", "mine"), nil, 0o600))
	require.Equal(t, "no output to remove\n", s.must("clean", "--captured", "--keep", "1h"))
	require.Equal(t, "would remove the output of run 1 under b\n", s.must("clean", "--captured", "b", "--dry-run"))
	require.Equal(t, "removed the output of run 1 under a\nremoved the output of run 2 under a\n", s.must("clean", "--captured", "a"))
	require.Equal(t, "removed the output of run 1 under b\n", s.must("clean", "--captured"))
	require.NoDirExists(t, s.private("runs", "a"))
	require.FileExists(t, s.private("runs", "b", "mine"))
	require.Equal(t, 1, s.run("logs", "b").code)
	require.Equal(t, 125, s.run("clean", "--captured", "--results").code)
}

// Output is not reported as removed if it cannot be removed, nor as absent if it cannot be read.
func TestCapturedWithoutPermission(t *testing.T) {
	t.Parallel()
	alice, bob := members(t)
	require.Equal(t, 0, alice.run("run", "-n", "a", "--capture", "--", "echo", "x").code)
	require.NoError(t, os.Chmod(alice.private("runs", "a"), 0o500))
	got := bob.run("logs", "a")
	require.Equal(t, 125, got.code)
	require.Contains(t, got.stderr, "permission denied")
	got = alice.run("clean", "--captured", "a")
	require.Equal(t, 125, got.code)
	require.NotContains(t, got.stdout, "removed")
	require.Contains(t, got.stderr, "permission denied")
}

// If the disk had no room even for the beginning of the output, the run is shown with its number.
func TestCapturedNothing(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.must("run", "-n", "a", "--capture", "--", "echo", "x")
	files, err := filepath.Glob(filepath.Join(s.private("runs", "a"), "*"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.NoError(t, os.Truncate(files[0], 0))
	require.Regexp(t, `^multilock: run 1 of "a": the output is cut: .*, or its output could not be written\n$`, s.run("logs", "a").stderr)
	require.Regexp(t, `(?m)^run 1 +a +0 +0 +- +-$`, s.must("logs"))
	require.NotContains(t, s.must("logs", "--json"), "start")
}

// A configuration file enables capturing by default, except for runs on a terminal.
func TestCaptureByConfiguration(t *testing.T) {
	t.Parallel()
	s, home := newStation(t), t.TempDir()
	path := filepath.Join(home, ".config", "multilock", "config")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	write := func(text string) {
		require.NoError(t, os.WriteFile(path, []byte("dir = \""+s.base+"\"\n"+text), 0o600))
	}
	write("capture = true\ncapture_keep = 2\ncapture_size = \"8M\"\n")
	for _, word := range []string{"one", "two", "three"} {
		got := s.configured(home, nil, "run", "-n", "a", "--", "echo", word)
		require.Equal(t, word+"\n", got.stdout)
	}
	s.configured(home, nil, "run", "-n", "a", "--capture=false", "--", "echo", "four")
	require.Equal(t, "three\n", s.must("logs", "-q", "a"))
	require.Equal(t, 1, s.run("logs", "a", "--run", "1").code)
	require.Regexp(t, `(?m)^capture +true +`+path+`$`, s.configured(home, nil, "config").stdout)
	for text, why := range map[string]string{"capture_size = \"1K\"\n": "too little", "capture_size = \"x\"\n": "write a size", "capture_keep = -1\n": "at least one"} {
		write(text)
		require.Contains(t, s.configured(home, nil, "run", "--", "true").stderr, why)
	}
}

// A job whose output has no reader ends, as it does without a capture.
func TestCapturedWithoutAReader(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	got := s.script("sh", "multilock run -q -n a --capture -- yes | head -n 1")
	require.Equal(t, "y\n", got.stdout)
	require.Regexp(t, `^(y\n)+$`, s.must("logs", "-q", "a"))
}

// A slow reader gets all output, and delays no release.
func TestCapturedForASlowReader(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	cmd := s.command("run", "-n", "a", "--capture", "--", "sh", "-c", "head -c 100000 /dev/zero; echo done")
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stdout = writer
	require.NoError(t, cmd.Start())
	require.NoError(t, writer.Close())
	s.eventually("the run is over", func() bool { return len(s.history("a", "--event", "released")) > 0 })
	require.Equal(t, "free", s.lock("a").State)
	text, err := io.ReadAll(reader)
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("\x00", 100_000)+"done\n", string(text))
	require.NoError(t, cmd.Wait())
}

// Users of a group can read each other's output, and remove the oldest, with any umask.
func TestCapturedByUsersOfAGroup(t *testing.T) {
	t.Parallel()
	alice, bob := members(t)
	for i, m := range []member{alice, bob, alice, bob} {
		got := m.run("run", "-n", "a", "--capture", "--capture-keep", "2", "--", "echo", strings.Repeat("x", i))
		require.Equal(t, ended{0, strings.Repeat("x", i) + "\n", ""}, got)
	}
	for _, m := range []member{alice, bob} {
		require.Equal(t, "xxx\n", m.must("logs", "-q", "a"))
		require.Equal(t, "xx\n", m.must("logs", "-q", "a", "--run", "3"))
		require.Contains(t, m.run("logs", "a", "--run", "2").stderr, "2 runs are, from run 3 to run 4")
	}
	require.Equal(t, "removed the output of run 3 under a\nremoved the output of run 4 under a\n", alice.must("clean", "--captured"))
}

// A slot has its own runs. Readers have no fencing token to identify a run.
func TestCapturedBySlot(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.must("run", "-n", "a", "--slots", "1", "--capture", "--", "echo", "x")
	require.Regexp(t, `(?m)^run 1 +a#slot-1 +1 +2 `, s.must("logs"))
	require.Equal(t, "x\n", s.must("logs", "-q", "a#slot-1"))
	require.Contains(t, s.run("run", "-n", "b.shared", "--shared", "--capture", "--", "true").stderr, "--capture and --shared cannot be used together")
}
