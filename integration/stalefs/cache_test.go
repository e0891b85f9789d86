//go:build linux

package stalefs_test

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/integration/stalefs"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/vfs"
)

// patient caches outlast every test.
var patient = stalefs.Options{MinAge: time.Hour, MaxAge: time.Hour}

func exists(dir vfs.Dir, name string) error {
	fd, err := dir.Pin()
	if err != nil {
		return err
	}
	defer dir.Unpin()
	var s unix.Stat_t
	return unix.Fstatat(fd, name, &s, unix.AT_SYMLINK_NOFOLLOW)
}

// A host caches an absent name as absent until it asks for the directory's attributes.
// Rule: none (simulated client)
func TestAbsentNameIsRemembered(t *testing.T) {
	c := newCluster(t, 2, patient)
	a, b := c.hosts[0].dir(t), c.hosts[1].dir(t)
	require.ErrorIs(t, exists(a, "dir"), syscall.ENOENT)
	require.NoError(t, b.Mkdir("dir", 0o777))
	require.ErrorIs(t, exists(a, "dir"), syscall.ENOENT)
	require.ErrorIs(t, a.Rmdir("dir"), syscall.ENOENT)
	require.Zero(t, c.hosts[0].Calls(), "rmdir trusted the cache")
	_, err := a.Stat()
	require.NoError(t, err)
	require.NoError(t, exists(a, "dir"))
	require.NoError(t, a.Rmdir("dir"))
	require.Equal(t, 1, c.hosts[0].Calls())
}

// mkdir always asks the server, and the reply leaves the cache unchanged.
// Rule: none (simulated client)
func TestMkdirAsksTheServer(t *testing.T) {
	c := newCluster(t, 2, patient)
	a, b := c.hosts[0].dir(t), c.hosts[1].dir(t)
	require.ErrorIs(t, exists(a, "dir"), syscall.ENOENT)
	require.NoError(t, b.Mkdir("dir", 0o777))
	require.ErrorIs(t, a.Mkdir("dir", 0o777), syscall.EEXIST)
	_, err := a.OpenDir("dir")
	require.ErrorIs(t, err, syscall.ENOENT)
	_, err = a.Stat()
	require.NoError(t, err)
	d, err := a.OpenDir("dir")
	require.NoError(t, err)
	require.NoError(t, d.Close())

	require.NoError(t, b.Rmdir("dir"))
	require.NoError(t, exists(a, "dir"), "removed elsewhere")
	require.NoError(t, a.Mkdir("dir", 0o777))
	require.Equal(t, []string{"dir"}, c.names(t))
}

// A host caches names as absent that it has removed or renamed itself.
// Rule: none (simulated client)
func TestOwnChangesAreRemembered(t *testing.T) {
	c := newCluster(t, 2, patient)
	a, b := c.hosts[0].dir(t), c.hosts[1].dir(t)
	require.NoError(t, a.Mkdir("removed", 0o777))
	require.NoError(t, a.Rmdir("removed"))
	require.NoError(t, a.Mkdir("old", 0o777))
	require.NoError(t, a.Rename("old", a, "new"))
	require.NoError(t, exists(a, "new"))
	for _, name := range []string{"removed", "old"} {
		require.NoError(t, b.Mkdir(name, 0o777))
		require.ErrorIs(t, a.Rmdir(name), syscall.ENOENT)
	}
	require.ElementsMatch(t, []string{"new", "old", "removed"}, c.names(t))
}

// Opening a directory refreshes what is cached of it, whichever name was used to reach it.
// Rule: none (simulated client)
func TestOpenRefreshes(t *testing.T) {
	c := newCluster(t, 2, patient)
	require.NoError(t, os.Mkdir(c.there("dir"), 0o777))
	a, b := c.hosts[0].dir(t, "dir"), c.hosts[1].dir(t, "dir")
	require.ErrorIs(t, exists(a, "file"), syscall.ENOENT)
	before := modified(t, a)
	f, err := b.Create("file", 0o666)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.ErrorIs(t, exists(a, "file"), syscall.ENOENT)
	require.Equal(t, before, modified(t, a))
	again := c.hosts[0].dir(t, "dir")
	require.NoError(t, exists(again, "file"))
	require.NoError(t, exists(a, "file"), "the other descriptor is of the same directory")
	require.NotEqual(t, before, modified(t, a))
}

func modified(t *testing.T, dir vfs.Dir) unix.Timespec {
	t.Helper()
	fd, err := dir.Pin()
	require.NoError(t, err)
	defer dir.Unpin()
	var s unix.Stat_t
	require.NoError(t, unix.Fstat(fd, &s))
	return s.Mtim
}

// Attributes are cached; a forced statx is not answered from the cache.
// Rule: none (simulated client)
func TestAttributesAreRemembered(t *testing.T) {
	c := newCluster(t, 2, patient)
	require.NoError(t, os.Mkdir(c.there("dir"), 0o777))
	a, b := c.hosts[0].dir(t, "dir"), c.hosts[1].dir(t, "dir")
	before := modified(t, a)
	require.NoError(t, b.Touch())
	require.Equal(t, before, modified(t, a))
	info, err := a.Stat()
	require.NoError(t, err)
	require.NotEqual(t, before, unix.NsecToTimespec(info.ModTime.UnixNano()))
	require.NotEqual(t, before, modified(t, a))
}

// A cached name is valid until it expires, and after that as long as the directory seems unchanged:
// with a coarse clock, forever.
// Rule: none (simulated client)
func TestMemoryEnds(t *testing.T) {
	short := stalefs.Options{MinAge: time.Millisecond, MaxAge: time.Millisecond}
	t.Run("with the directory's change", func(t *testing.T) {
		c := newCluster(t, 2, short)
		a, b := c.hosts[0].dir(t), c.hosts[1].dir(t)
		require.ErrorIs(t, exists(a, "dir"), syscall.ENOENT)
		require.NoError(t, b.Mkdir("dir", 0o777))
		require.Eventually(t, func() bool { return exists(a, "dir") == nil }, watchdog, time.Millisecond)
	})
	t.Run("not within a tick of the server's clock", func(t *testing.T) {
		c := newCluster(t, 0, short)
		c.server.Tick = 1 << 62 // one tick for the whole test
		a, b := c.add(t, "a", short).dir(t), c.add(t, "b", short).dir(t)
		require.ErrorIs(t, exists(a, "dir"), syscall.ENOENT)
		require.NoError(t, b.Mkdir("dir", 0o777))
		time.Sleep(20 * time.Millisecond) // many times the maximum age
		require.ErrorIs(t, exists(a, "dir"), syscall.ENOENT)
		require.ErrorIs(t, a.Mkdir("dir", 0o777), syscall.EEXIST)
	})
}

// A lock is released and acquired within one tick of the server's clock, and its new holder dies.
// Hosts that inspected the lock in between have cached its absence, and no request tells them
// otherwise; but each of them can change the group and so make the others ask again.
// Rule: stale-names
func TestDeadHolderBehindARememberedAbsence(t *testing.T) {
	t.Parallel()
	const tick, ttl = 500 * time.Millisecond, time.Second
	c := newCluster(t, 3, patient)
	c.server.Tick = tick
	place := c.newPlace(t)
	dying := c.results(t, c.hosts[0], place)
	heirs := []*fslock.Source{c.results(t, c.hosts[1], place), c.results(t, c.hosts[2], place)}
	for _, heir := range heirs {
		lock, err := multilock.TryAcquire(t.Context(), heir, "job", multilock.Options{})
		require.NoError(t, err)
		require.NoError(t, lock.Release(t.Context()))
	}
	for !c.takenInOneStep(t, place, tick, dying, heirs, ttl) {
	}
	taken := make(chan error, len(heirs))
	for _, heir := range heirs {
		go func() {
			lock, err := multilock.Acquire(within(t), heir, "job", multilock.Options{})
			if err == nil {
				err = lock.Release(within(t))
			}
			taken <- err
		}()
	}
	for range heirs {
		require.NoError(t, <-taken)
	}
}

// takenInOneStep acquires the lock for a holder that dies, right after the heirs have seen the lock
// free. It returns false if the clock ticked in between.
func (c *cluster) takenInOneStep(t *testing.T, place string, tick time.Duration, dying *fslock.Source, heirs []*fslock.Source, ttl time.Duration) bool {
	step := func() int64 { return time.Now().UnixNano() / int64(tick) }
	time.Sleep(tick - time.Duration(time.Now().UnixNano()%int64(tick)))
	begun := step()
	last, err := multilock.TryAcquire(t.Context(), dying, "job", multilock.Options{})
	require.NoError(t, err)
	require.NoError(t, last.Release(t.Context()))
	for _, heir := range heirs {
		seen, err := multilock.Inspect(t.Context(), heir, "job", multilock.StalePolicy{})
		require.NoError(t, err)
		require.Equal(t, multilock.StateFree, seen.State)
	}
	lock, err := multilock.TryAcquire(t.Context(), dying, "job", multilock.Detached{Options: multilock.Options{TTL: ttl}})
	require.NoError(t, err)
	if step() == begun {
		require.NoError(t, lock.Detach())
		return true
	}
	require.NoError(t, lock.Release(t.Context()))
	return false
}
