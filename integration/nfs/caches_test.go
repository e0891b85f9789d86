package nfs_test

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/fslock"
)

// A crash in the middle of a release leaves an empty directory in the lock's place. os.Rename
// checks before the system call and rejects any existing directory, whereas the server replaces an
// empty one.
// Rule: rename
func TestRenameOntoAnEmptyDirectory(t *testing.T) {
	eachVersion(t, func(t *testing.T, h host, others []host) {
		p := newPlace(t)
		dir, other := p.dir(t, h), p.dir(t, others[0])
		require.NoError(t, dir.Mkdir("full", 0o777))
		require.NoError(t, other.Mkdir("empty", 0o777))
		err := h.inside(func() error { return os.Rename(p.on(h, "full"), p.on(h, "empty")) })
		require.ErrorIs(t, err, syscall.EEXIST)
		require.NoError(t, dir.Rename("full", dir, "empty"))

		require.NoError(t, other.Mkdir(fslock.DefaultGroup, 0o777))
		require.NoError(t, p.dir(t, others[0], fslock.DefaultGroup).Mkdir("job", 0o777))
		require.NoError(t, try(t, p.source(t, h), "job", longOptions()).Release(within(t)))
	})
}

// A host that has once seen a group missing answers rmdir with ENOENT without asking the server. A
// barrier built on that would report an empty group while a lock is held. The lock's own barrier
// asks the server.
// Rule: barrier
func TestBarrierFromACache(t *testing.T) {
	eachVersion(t, func(t *testing.T, h host, others []host) {
		p := newPlace(t)
		src, base := p.source(t, h), p.dir(t, h)
		requireEmpty(t, src, true)
		_, err := base.StatName(fslock.DefaultGroup)
		require.ErrorIs(t, err, syscall.ENOENT)
		lease := plant(t, p.source(t, others[0]), "job", long)

		before := h.requests(t)
		require.ErrorIs(t, base.Rmdir(fslock.DefaultGroup), syscall.ENOENT, "inconclusive: the bare rmdir sees the lock")
		require.Equal(t, before, h.requests(t))

		requireEmpty(t, src, false)
		names, err := src.Names(within(t))
		require.NoError(t, err)
		require.Equal(t, []string{"job"}, names)
		require.NoError(t, lease.Release(within(t)))
		requireEmpty(t, src, true)
	})
}

func requireEmpty(t testing.TB, src *fslock.Source, want bool) {
	t.Helper()
	empty, err := src.Empty(within(t))
	require.NoError(t, err)
	require.Equal(t, want, empty)
}

// A host that has cached a directory as missing learns from mkdir that it exists. From Linux 6.15
// on, a v4 client may keep the negative entry and answer the following open with ENOENT. The lab's
// kernel may be older and drop it; the lock works either way.
// Rule: stale-names
func TestOpenAfterARefusedMkdir(t *testing.T) {
	eachVersion(t, func(t *testing.T, h host, others []host) {
		p := newPlace(t)
		base := p.dir(t, h)
		for _, name := range []string{"bare", ".multilock", fslock.DefaultGroup} {
			_, err := base.StatName(name)
			require.ErrorIs(t, err, syscall.ENOENT)
		}
		require.NoError(t, p.dir(t, others[0]).Mkdir("bare", 0o777))
		lock := try(t, p.source(t, others[0]), "job", longOptions())

		require.ErrorIs(t, base.Mkdir("bare", 0o777), syscall.EEXIST)
		bare, err := base.OpenDir("bare")
		t.Logf("open after mkdir = EEXIST: %v", err)
		if err == nil {
			require.NoError(t, bare.Close())
		}
		require.Contains(t, []syscall.Errno{0, syscall.ENOENT}, errnoOf(err))

		requireHeldBy(t, p.source(t, h), "job", lock.Record().Token)
		require.NoError(t, try(t, p.source(t, h), "other", longOptions()).Release(within(t)))
	})
}

// errnoOf returns the errno in an error, 0 if it has none.
func errnoOf(err error) syscall.Errno {
	var number syscall.Errno
	errors.As(err, &number)
	return number
}
