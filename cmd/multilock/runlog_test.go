//go:build unix

package main_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func requireLogged(t *testing.T, want, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, string(text))
}

// Each run has its own file, and the last files are kept.
func TestRunLogFile(t *testing.T) {
	t.Parallel()
	s, log := newStation(t), filepath.Join(t.TempDir(), "nightly.log")
	for i := range 4 {
		got := s.run("run", "--log", log, "--log-keep", "3", "--", "sh", "-c", "echo out $0; echo err $0 >&2", strconv.Itoa(i))
		require.Equal(t, ended{0, "", ""}, got)
	}
	requireLogged(t, "out 3\nerr 3\n", log)
	requireLogged(t, "out 1\nerr 1\n", log+".2")
	require.NoFileExists(t, log+".3")

	holder := s.hold("lock")
	require.Equal(t, 121, s.run("run", "--log", log, "--", "true").code)
	requireLogged(t, "out 3\nerr 3\n", log)
	holder.end()
}

func TestRunLogOfAFailure(t *testing.T) {
	t.Parallel()
	s, log := newStation(t), filepath.Join(t.TempDir(), "log")
	told := "multilock: the command's output is in " + log + "\n"
	require.Equal(t, ended{3, "", told}, s.run(append([]string{"run", "--log", log}, noisy("3")...)...))
	requireLogged(t, "one\ntwo\nthree\nfour\n", log)

	both := s.run(append([]string{"run", "--log", log, "--quiet-success"}, noisy("3")...)...)
	require.Equal(t, ended{3, "one\nthree\n", "two\nfour\n" + told}, both)
	require.Equal(t, ended{0, "", ""}, s.run(append([]string{"run", "--log", log, "--quiet-success"}, noisy("0")...)...))
}

// A directory has the logs of several locks, and of several slots.
func TestRunLogDirectory(t *testing.T) {
	t.Parallel()
	s, logs := newStation(t), filepath.Join(t.TempDir(), "logs")+"/"
	for range 3 {
		s.must("run", "-n", "a.b", "--log", logs, "--log-keep", "2", "--", "echo", "hello")
	}
	s.must("run", "-n", "a", "--slots", "2", "--log", logs, "--", "echo", "hello")
	found, err := filepath.Glob(logs + "a.b.*.log")
	require.NoError(t, err)
	require.Len(t, found, 2)
	requireLogged(t, "hello\n", found[0])
	found, err = filepath.Glob(logs + "a#slot-?.2*.log")
	require.NoError(t, err)
	require.Len(t, found, 1)
}

// A command whose output could not be logged is not started.
func TestRunLogThatCannotBeMade(t *testing.T) {
	t.Parallel()
	s, file := newStation(t), filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	got := s.run("run", "--log", file+"/log", "--", "echo", "ran")
	require.Equal(t, 125, got.code)
	require.Empty(t, got.stdout)
	require.Contains(t, got.stderr, "--log: ")
	require.Equal(t, "free", s.lock("lock").State)
	for _, wrong := range [][]string{{"--log-keep", "2"}, {"--log", "x", "--log-keep", "0"}, {"--log", "x", "--slots", "2"}} {
		require.Equal(t, 125, s.run(append(append([]string{"run"}, wrong...), "--", "true")...).code)
	}
}

// If a log cannot be written, that is reported, and does not affect the job.
func TestRunLogOnAFullDisk(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("needs /dev/full")
	}
	got := newStation(t).run(append([]string{"run", "--log", "/dev/full", "--quiet-success"}, noisy("0")...)...)
	require.Zero(t, got.code)
	require.Contains(t, got.stderr, "multilock: warning: the log of the command's output is not complete: write /dev/full: no space left on device")
	failed := newStation(t).run(append([]string{"run", "--log", "/dev/full", "--quiet-success"}, noisy("3")...)...)
	require.Equal(t, "one\nthree\n", failed.stdout)
}

// A background process that keeps writing blocks no other process, and does not fill the disk.
func TestRunLogOfOneWhoWritesOn(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	path := filepath.Join(t.TempDir(), "log")
	require.Zero(t, s.run("run", "-n", "x", "--log", path, "--", "sh", "-c", "yes & sleep 0.1").code)
	require.Zero(t, s.run("run", "-n", "x", "--", "true").code, "the lock is given back")
}

func TestRunLogOfManyAtATime(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	got := s.run("run", "-n", "x.shared", "--shared", "--log", filepath.Join(t.TempDir(), "log"), "--", "true")
	require.Equal(t, 125, got.code)
	require.Contains(t, got.stderr, "name a directory")
}

// Each slot rotates its own logs: a log that is being written is not removed for another slot.
func TestRunLogOfSlotsInUse(t *testing.T) {
	t.Parallel()
	s, logs := newStation(t), filepath.Join(t.TempDir(), "logs")+"/"
	run := []string{"run", "-n", "a", "--slots", "2", "--log", logs, "--log-keep", "1", "--"}
	first := s.start(append(run, "sh", "-c", "echo first; cat")...)
	s.eventually("it has its slot", func() bool { return len(s.locks()) == 1 })
	for range 3 {
		s.must(append(run, "echo", "other")...)
	}
	require.Zero(t, first.end().code)
	found, err := filepath.Glob(logs + "a#slot-?.*.log")
	require.NoError(t, err)
	require.Len(t, found, 2)
	all := ""
	for _, path := range found {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		all += string(text)
	}
	require.ElementsMatch(t, []string{"first", "other"}, strings.Fields(all))
}

// A stalled or missing reader delays the release for a limited time. The incomplete log is reported, and does
// not change the exit code.
func TestRunLogThatHangs(t *testing.T) {
	t.Parallel()
	s, pipe := newStation(t), filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	got := s.run("run", "--log", pipe, "--", "true")
	require.Equal(t, 125, got.code, got.stderr)
	require.Contains(t, got.stderr, "it cannot be opened; if it is a pipe, no process reads from it")
	require.Empty(t, s.locks())

	reader, err := os.OpenFile(pipe, os.O_RDWR|syscall.O_NONBLOCK, 0)
	require.NoError(t, err)
	defer reader.Close()
	full := reader.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	require.NoError(t, full)
	for full == nil {
		_, full = reader.Write(make([]byte, 4096))
	}
	got = s.run("run", "--log", pipe, "--", "sh", "-c", "echo one; echo two; exit 3")
	require.Equal(t, 3, got.code, got.stderr)
	require.Contains(t, got.stderr, "warning: the log of the command's output is not complete: it was still being written 10s after the command's end")
	require.Empty(t, s.locks())
}
