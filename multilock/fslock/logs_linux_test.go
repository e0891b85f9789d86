package fslock_test

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/fslock"
)

// print adds to the log of a name, as a job does.
func printTo(logs *fslock.Logs, name string) (before int64, err error) {
	log, before, err := logs.Append(name)
	if err != nil {
		return 0, err
	}
	if _, err := io.WriteString(log, "printed\n"); err != nil {
		return before, err
	}
	return before, log.Close()
}

// A log is added to. Looking for one makes nothing.
func TestLogs(t *testing.T) {
	src := open(t, fslock.Options{Base: t.TempDir()})
	_, err := src.FindLogs()
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Empty(t, namesIn(t, src.Base()))

	logs, err := src.OpenLogs()
	require.NoError(t, err)
	require.False(t, logs.Has("a"))
	for _, want := range []int64{0, 8} {
		before, err := printTo(logs, "a")
		require.NoError(t, err)
		require.Equal(t, want, before)
	}
	require.True(t, logs.Has("a"))
	text, err := os.ReadFile(logs.Path("a"))
	require.NoError(t, err)
	require.Equal(t, "printed\nprinted\n", string(text))
	require.NoError(t, logs.Close())

	again, err := src.FindLogs()
	require.NoError(t, err)
	require.True(t, again.Has("a"))
	require.NoError(t, again.Close())
}

// What is no file of its own in the place of a log is not written to, and not waited for.
func TestLogInTheWay(t *testing.T) {
	src := open(t, fslock.Options{Base: t.TempDir()})
	logs, err := src.OpenLogs()
	require.NoError(t, err)
	defer logs.Close()
	precious := filepath.Join(t.TempDir(), "precious")
	require.NoError(t, os.WriteFile(precious, nil, 0o600))
	for name, put := range map[string]func(path string) error{
		"link":   func(path string) error { return os.Symlink(precious, path) },
		"linked": func(path string) error { return os.Link(precious, path) },
		"pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
	} {
		require.NoError(t, put(logs.Path(name)))
		_, err := printTo(logs, name)
		require.Error(t, err, name)
	}
	info, err := os.Stat(precious)
	require.NoError(t, err)
	require.Zero(t, info.Size())
}
