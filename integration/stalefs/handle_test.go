//go:build linux

package stalefs_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/vfs"
)

func put(t testing.TB, dir vfs.Dir, name, content string) {
	t.Helper()
	f, err := dir.Create(name, 0o666)
	require.NoError(t, err)
	_, err = f.Write([]byte(content))
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func read(t testing.TB, f vfs.File) string {
	t.Helper()
	buf := make([]byte, 100)
	n, err := f.Read(buf)
	if !errors.Is(err, io.EOF) {
		require.NoError(t, err)
	}
	return string(buf[:n])
}

// A descriptor of a directory that another host has removed reaches nothing, not even a new
// directory of the same name.
// Rule: none (simulated client)
func TestDescriptorOfARemovedDirectory(t *testing.T) {
	c := newCluster(t, 2, patient)
	a, b := c.hosts[0].dir(t), c.hosts[1].dir(t)
	require.NoError(t, b.Mkdir("dir", 0o777))
	old, err := a.OpenDir("dir")
	require.NoError(t, err)
	defer old.Close()
	put(t, c.hosts[1].dir(t, "dir"), "file", "old")
	require.NoError(t, b.Rename("dir", b, "gone"))
	put(t, c.hosts[1].dir(t, "gone"), "another", "")
	require.Equal(t, []string{"another", "file"}, sorted(t, old), "a rename must not invalidate a handle")

	require.NoError(t, os.RemoveAll(c.there("gone")))
	require.NoError(t, b.Mkdir("dir", 0o777))
	put(t, c.hosts[1].dir(t, "dir"), "file", "new")
	for what, err := range map[string]error{
		"stat": statError(old), "touch": old.Touch(), "unlink": old.Unlink("file"), "mkdir": old.Mkdir("x", 0o777), "list": listError(old),
	} {
		require.ErrorIs(t, err, syscall.ESTALE, what)
	}
	require.Equal(t, []string{"file"}, c.names(t, "dir"))
}

func sorted(t testing.TB, dir vfs.Dir) []string {
	t.Helper()
	names, err := shareddir.Names(dir.List, func(string) bool { return true })
	require.NoError(t, err)
	return names
}

func statError(dir vfs.Dir) error { _, err := dir.Stat(); return err }

func listError(dir vfs.Dir) error { return dir.List(nil) }

// With a path, the kernel walks the path again after ESTALE, and finds the successor.
// Rule: none (simulated client)
func TestPathOfARemovedDirectory(t *testing.T) {
	c := newCluster(t, 2, patient)
	b := c.hosts[1].dir(t)
	require.NoError(t, b.Mkdir("dir", 0o777))
	put(t, c.hosts[1].dir(t, "dir"), "file", "old")
	path := c.hosts[0].on("dir", "file")
	require.NoError(t, unix.Access(path, unix.F_OK))

	require.NoError(t, os.RemoveAll(c.there("dir")))
	require.NoError(t, b.Mkdir("dir", 0o777))
	put(t, c.hosts[1].dir(t, "dir"), "file", "new")
	require.NoError(t, unix.Unlink(path), "the path was meant for the old file")
	require.Empty(t, c.names(t, "dir"))
}

// A file that another host has removed is gone for a process that has it open.
// Rule: none (simulated client)
func TestFileRemovedElsewhere(t *testing.T) {
	c := newCluster(t, 2, patient)
	a, b := c.hosts[0].dir(t), c.hosts[1].dir(t)
	put(t, b, "file", "content")
	f, err := a.Open("file")
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, b.Unlink("file"))
	require.Empty(t, c.names(t), "only the client that has a file open knows that it is open")
	_, err = f.Read(make([]byte, 10))
	require.ErrorIs(t, err, syscall.ESTALE)
	_, err = f.Stat()
	require.ErrorIs(t, err, syscall.ESTALE)
	_, err = a.StatName("file")
	require.ErrorIs(t, err, syscall.ENOENT, "after ESTALE the kernel must look the name up again")
}

// A file that is removed while it is open on the same host remains under another name, and keeps
// its directory from being removed.
// Rule: none (simulated client)
func TestSillyRename(t *testing.T) {
	c := newCluster(t, 2, patient)
	a, b := c.hosts[0].dir(t), c.hosts[1].dir(t)
	require.NoError(t, a.Mkdir("dir", 0o777))
	dir := c.hosts[0].dir(t, "dir")
	put(t, dir, "file", "content")
	f, err := dir.Open("file")
	require.NoError(t, err)
	require.NoError(t, dir.Unlink("file"))
	require.ErrorIs(t, exists(dir, "file"), syscall.ENOENT)
	left := c.names(t, "dir")
	require.Len(t, left, 1)
	require.True(t, strings.HasPrefix(left[0], ".nfs"), left)

	require.Equal(t, "content", read(t, f))
	require.ErrorIs(t, a.Rmdir("dir"), syscall.ENOTEMPTY)
	require.ErrorIs(t, dir.Unlink(left[0]), syscall.EBUSY, "the client that renamed it must refuse")
	require.NoError(t, f.Close())
	require.Eventually(t, func() bool { return len(c.names(t, "dir")) == 0 }, watchdog, 1e6, "the close must remove it")
	require.NoError(t, a.Rmdir("dir"))

	require.NoError(t, b.Mkdir("dir", 0o777))
	other := c.hosts[1].dir(t, "dir")
	put(t, other, "file", "content")
	f, err = other.Open("file")
	require.NoError(t, err)
	require.NoError(t, other.Unlink("file"))
	left = c.names(t, "dir")
	require.Len(t, left, 1)
	require.NoError(t, statError(a), "the client should have the removed name cached")
	require.NoError(t, c.hosts[0].dir(t, "dir").Unlink(left[0]), "to other clients it is an ordinary file")
	_, err = f.Stat()
	require.ErrorIs(t, err, syscall.ESTALE)
	require.NoError(t, f.Close())
}

// A touch uses the server's time, and reaches the server.
// Rule: none (simulated client)
func TestTouch(t *testing.T) {
	c := newCluster(t, 1, patient)
	require.NoError(t, os.Mkdir(c.there("dir"), 0o777))
	before, err := os.Stat(c.there("dir"))
	require.NoError(t, err)
	dir := c.hosts[0].dir(t, "dir")
	require.NoError(t, dir.Touch())
	after, err := os.Stat(c.there("dir"))
	require.NoError(t, err)
	require.True(t, after.ModTime().After(before.ModTime()))
	info, err := dir.Stat()
	require.NoError(t, err)
	require.Equal(t, after.ModTime().UnixNano(), info.ModTime.UnixNano())
}
