package nfs_test

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// succession breaks a lock and acquires it anew. meanwhile runs before the break: it lets a slow
// breaker on another host look at the old lock.
func succession(t *testing.T, p place, others []host, meanwhile func()) (successor source.Lease) {
	t.Helper()
	first, second := p.source(t, others[0]), p.source(t, others[1])
	plant(t, first, "job", long)
	meanwhile()
	breakAlive(t, second)
	return plant(t, second, "job", long)
}

// A breaker that removes the lock file by its path removes whatever lock is there by then: the
// kernel gets ESTALE for the handle of the old directory, and walks the path again.
// Rule: break
func TestSlowBreakerByPath(t *testing.T) {
	eachVersion(t, func(t *testing.T, h host, others []host) {
		p := newPlace(t)
		path := p.on(h, fslock.DefaultGroup, "job", "job.locked")
		successor := succession(t, p, others, func() {
			require.NoError(t, h.inside(func() error {
				_, err := os.ReadFile(path)
				return err
			}))
		})
		require.NoError(t, h.inside(func() error { return unix.Unlink(path) }))
		require.Empty(t, p.record(t, "job").Token, "inconclusive: the successor's lock is still there")
		require.ErrorIs(t, successor.Renew(within(t)), multilock.ErrLost)
	})
}

// openLockFile opens the lock file through a host's client and keeps it open.
func openLockFile(t testing.TB, p place, h host) vfs.File {
	t.Helper()
	f, err := p.dir(t, h, fslock.DefaultGroup, "job").Open("job.locked")
	require.NoError(t, err)
	return f
}

// requireSilly checks that the lock's directory contains only the file that an NFS client leaves
// when a file is removed while a process on the same host has it open.
func requireSilly(t testing.TB, p place) {
	t.Helper()
	left := p.entries(t, fslock.DefaultGroup, "job")
	require.Len(t, left, 1)
	require.True(t, strings.HasPrefix(left[0], ".nfs"), left[0])
}

// If a lock is released while a process on the same host has its file open, the lock is free, but a
// rename onto it and an rmdir fail until the reader closes the file. Then the lock can be acquired
// at once.
// Rule: orphan
func TestSillyRenameEndsWithItsReader(t *testing.T) {
	eachVersion(t, func(t *testing.T, h host, others []host) {
		p := newPlace(t)
		lock := try(t, p.source(t, h), "job", longOptions())
		reader := openLockFile(t, p, h)
		require.NoError(t, lock.Release(within(t)))
		requireSilly(t, p)

		base := p.dir(t, others[0])
		group := p.dir(t, others[0], fslock.DefaultGroup)
		require.NoError(t, base.Mkdir("mine", 0o777))
		require.Contains(t, []syscall.Errno{syscall.ENOTEMPTY, syscall.EEXIST}, errnoOf(base.Rename("mine", group, "job")))
		require.Contains(t, []syscall.Errno{syscall.ENOTEMPTY, syscall.EEXIST}, errnoOf(group.Rmdir("job")))

		require.NoError(t, reader.Close())
		eventually(t, "the leftover disappears", func() bool { return len(p.entries(t, fslock.DefaultGroup, "job")) == 0 })
		require.NoError(t, try(t, p.source(t, others[0]), "job", longOptions()).Release(within(t)))
	})
}

// A breaker on the reader's host leaves nothing in the lock's directory: the lock is free at once,
// however long the reader keeps the file open.
// Rule: break
func TestBreakOnTheReadersHost(t *testing.T) {
	eachVersion(t, func(t *testing.T, h host, others []host) {
		p := newPlace(t)
		plant(t, p.source(t, others[0]), "job", long)
		reader := openLockFile(t, p, h)
		src := p.source(t, h)
		breakAlive(t, src)
		require.NoError(t, try(t, src, "job", longOptions()).Release(within(t)))
		require.NoError(t, reader.Close())
		eventually(t, "nothing is left in staging", func() bool { return len(p.entries(t, ".multilock", "staging")) == 0 })
	})
}

// If a file is removed while a process on the same host has it open, the client keeps it under
// another name. On that host this leftover can be neither removed nor moved, whatever the new name.
// Rule: break, orphan
func TestLeftoverIsHeldFast(t *testing.T) {
	eachVersion(t, func(t *testing.T, h host, _ []host) {
		p := newPlace(t)
		base := p.dir(t, h)
		for _, made := range []string{"lock", "aside"} {
			require.NoError(t, base.Mkdir(made, 0o777))
		}
		dir, aside := p.dir(t, h, "lock"), p.dir(t, h, "aside")
		reader, err := dir.Create("file", 0o666)
		require.NoError(t, err)
		require.NoError(t, dir.Unlink("file"))
		left := p.entries(t, "lock")
		require.Len(t, left, 1)
		require.True(t, strings.HasPrefix(left[0], ".nfs"), left[0])
		require.Equal(t, syscall.EBUSY, errnoOf(dir.Unlink(left[0])))
		for _, target := range []string{left[0], "trash"} {
			require.Equal(t, syscall.EBUSY, errnoOf(dir.Rename(left[0], aside, target)))
		}
		require.NoError(t, reader.Close())
		eventually(t, "the leftover disappears", func() bool { return len(p.entries(t, "lock")) == 0 })
	})
}
