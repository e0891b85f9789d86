package nfs_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/multilock/vfs"
)

// barePrices are the least that other kinds of locks can do, for comparison: taken
// and given back, without a holder's name, a sign of life or a read-back. They
// also tell how far the figures above are the protocol's, and how far NFS's.
func barePrices() []price {
	return []price{
		{what: "bare: mkdir, rmdir", most: [3]int{2, 2, 2}, call: costOfMkdir},
		{what: "bare: exclusive create, unlink", most: [3]int{5, 5, 4}, call: costOfCreate},
		{what: "bare: link of a file of one's own", most: [3]int{9, 9, 8}, call: costOfLink},
		{what: "bare: the steps of a cycle", most: [3]int{10, 10, 10}, call: costOfSteps},
	}
}

func isBare(what string) bool {
	return slices.ContainsFunc(barePrices(), func(p price) bool { return p.what == what })
}

func costOfMkdir(t *testing.T, b bench) func() {
	dir := b.dir(t, b.host)
	return func() {
		require.NoError(t, dir.Mkdir("lock", 0o777))
		require.NoError(t, dir.Rmdir("lock"))
	}
}

func costOfCreate(t *testing.T, b bench) func() {
	dir := b.dir(t, b.host)
	return func() {
		writeFile(t, dir, "lock")
		require.NoError(t, dir.Unlink("lock"))
	}
}

func costOfLink(t *testing.T, b bench) func() {
	dir := b.dir(t, b.host)
	fd, err := dir.Pin()
	require.NoError(t, err)
	t.Cleanup(dir.Unpin)
	return func() {
		writeFile(t, dir, "mine")
		require.NoError(t, unix.Linkat(fd, "mine", fd, "lock", 0))
		info, err := dir.StatName("mine")
		require.NoError(t, err)
		require.EqualValues(t, 2, info.Links)
		require.NoError(t, dir.Unlink("lock"))
		require.NoError(t, dir.Unlink("mine"))
	}
}

// costOfSteps changes what the lock's own cycle changes, with as few questions as this
// client can be made to ask, and looks at nothing: what a read-back costs comes on top.
// A descriptor of the kind O_PATH is one that asks nothing when it is opened.
func costOfSteps(t *testing.T, b bench) func() {
	dir := b.dir(t, b.host)
	require.NoError(t, dir.Mkdir("group", 0o777))
	group, err := dir.OpenDir("group")
	require.NoError(t, err)
	t.Cleanup(func() { _ = group.Close() })
	at, err := group.Pin()
	require.NoError(t, err)
	t.Cleanup(group.Unpin)
	return func() {
		require.NoError(t, dir.Mkdir("staged", 0o777))
		f, err := dir.OpenDurable("staged/lock.locked", 0o666)
		require.NoError(t, err)
		_, err = f.Write([]byte("host 4711\n"))
		require.NoError(t, err)
		require.NoError(t, f.Close())
		require.NoError(t, dir.Rename("staged", group, "lock"))
		held, err := unix.Openat(at, "lock", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		require.NoError(t, err)
		require.NoError(t, unix.Unlinkat(held, "lock.locked", 0))
		require.NoError(t, group.Rmdir("lock"))
		require.NoError(t, unix.Close(held))
	}
}

func writeFile(t *testing.T, dir vfs.Dir, name string) {
	t.Helper()
	f, err := dir.Create(name, 0o666)
	require.NoError(t, err)
	_, err = f.Write([]byte("host 4711\n"))
	require.NoError(t, err)
	require.NoError(t, f.Close())
}
