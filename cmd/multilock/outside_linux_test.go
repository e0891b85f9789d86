package main_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// victim returns a file that only this user can write.
func victim(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "shadow")
	require.NoError(t, os.WriteFile(file, []byte("precious"), 0o600))
	return file
}

func requireText(t *testing.T, want, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, want, string(text[:min(len(text), 100)]))
}

func requireUnharmed(t *testing.T, file string) {
	t.Helper()
	requireText(t, "precious", file)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	require.Len(t, entriesOf(t, filepath.Dir(file)), 1)
}

// strangersDir returns a directory that all users can write.
func strangersDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o777)) //nolint:gosec // that is what it is about
	return dir
}

// strangersOwn makes another user the owner of a prepared file.
func strangersOwn(t *testing.T, path string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("it takes root to give files away")
	}
	require.NoError(t, os.Lchown(path, 4711, 4711))
}

// A file among the output of jobs that is not output is neither read nor written, and does not hide the other
// output.
func TestLogsAmongStrangers(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(log, precious string) error{
		"a link":                 func(log, precious string) error { return os.Symlink(precious, log) },
		"a link to what is not":  func(log, precious string) error { return os.Symlink(filepath.Join(filepath.Dir(precious), "new"), log) },
		"a hard link":            func(log, precious string) error { return os.Link(precious, log) },
		"a file of the stranger": func(log, _ string) error { return os.WriteFile(log, []byte(forgedLog), 0o666) },
		"a pipe":                 func(log, _ string) error { return syscall.Mkfifo(log, 0o666) },
		"a directory":            func(log, _ string) error { return os.Mkdir(log, 0o777) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, precious := newStation(t), victim(t)
			s.must("batch", s.list("x\techo secret"))
			log := filepath.Join(s.base, ".multilock", "groups", ".locks", "logs", "0.out")
			require.NoError(t, put(log, precious))
			if name != "a hard link" { // its owner is that of the file
				strangersOwn(t, log)
			}
			got := s.run("logs", "x")
			require.Equal(t, "secret\n", got.stdout)
			if name != "a hard link" { // an empty file looks like one that was just created
				require.Contains(t, got.stderr, "0.out")
			}
			s.must("clean", "--results") // and the list
			s.must("batch", s.list("x\techo secret"))
			requireUnharmed(t, precious)
		})
	}
}

const forgedLog = "=== multilock 1 \"h\"\n=== #1 attempt 1 at 2026-01-02T03:04:05Z out 7 \"x\"\nforged\n\n"

// Root runs no list that another user can have written, except from the standard input.
func TestListOfAStranger(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		put  func(file, list string) error
		want string
	}{
		"theirs":       {func(file, _ string) error { return os.Lchown(file, 4711, 4711) }, "it belongs to uid 4711"},
		"open to all":  {func(file, _ string) error { return os.Chmod(file, 0o666) }, "all users can write to it"},
		"behind links": {func(file, list string) error { return errors.Join(os.Remove(file), os.Symlink(list, file)) }, "a link is not followed"},
		"a pipe": {func(file, _ string) error {
			return errors.Join(os.Remove(file), syscall.Mkfifo(file, 0o666), os.Chmod(file, 0o666))
		}, "all users can write to it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, ran := newStation(t), filepath.Join(t.TempDir(), "ran")
			list := s.list("touch " + ran)
			file := filepath.Join(strangersDir(t), "jobs")
			text, err := os.ReadFile(list)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(file, text, 0o600))
			strangersOwn(t, file)
			require.NoError(t, os.Lchown(file, 0, 0))
			require.NoError(t, c.put(file, list))
			got := s.run("batch", file)
			require.Equal(t, 125, got.code)
			require.Contains(t, got.stderr, c.want)
			require.NoFileExists(t, ran)
			if name != "a pipe" {
				s.script("sh", "multilock batch - <"+file)
				require.FileExists(t, ran)
			}
		})
	}
}
