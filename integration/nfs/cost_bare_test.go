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

func writeFile(t *testing.T, dir vfs.Dir, name string) {
	t.Helper()
	f, err := dir.Create(name, 0o666)
	require.NoError(t, err)
	_, err = f.Write([]byte("host 4711\n"))
	require.NoError(t, err)
	require.NoError(t, f.Close())
}
