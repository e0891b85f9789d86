package nfs_test

import (
	"errors"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/vfs"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// openLockFile opens the lock's file through a host's client and keeps it open.
func openLockFile(t testing.TB, p place, h host) vfs.File {
	t.Helper()
	f, err := p.dir(t, h, fslock.DefaultGroup, "job").Open("job.locked")
	require.NoError(t, err)
	return f
}

// requireSilly checks that the lock's directory has nothing but what NFS leaves
// in place of a file that was removed while somebody on the same host read it.
func requireSilly(t testing.TB, p place) {
	t.Helper()
	left := p.entries(t, fslock.DefaultGroup, "job")
	require.Len(t, left, 1)
	require.True(t, strings.HasPrefix(left[0], ".nfs"), left[0])
}

// Nobody holds the lock then, and a rename onto it or an rmdir fails, as long as
// the reader has the file open. When it closes the file the lock is free at once.
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
		eventually(t, "the leftover goes", func() bool { return len(p.entries(t, fslock.DefaultGroup, "job")) == 0 })
		require.NoError(t, try(t, p.source(t, others[0]), "job", longOptions()).Release(within(t)))
	})
}

// A reader that never closes the file, or whose host dies with it, leaves the
// directory like that for good. After ten silent seconds another host clears it.
func TestSillyRenameThatStays(t *testing.T) {
	needLab(t)
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	for name, dies := range map[string]bool{"the reader goes on": false, "the reader's host dies": true} {
		t.Run(name, func(t *testing.T) {
			for _, other := range hosts() {
				t.Run("v"+other.version, func(t *testing.T) {
					t.Parallel()
					p := newPlace(t)
					h := addHost(t, "reader"+strings.ReplaceAll(other.version, ".", ""), other.version, "hard")
					holder, reader := newActor(t, h, p), newActor(t, h, p)
					holder.must(t, order{Do: "acquire", Name: "job", TTL: long})
					reader.must(t, order{Do: "keep open", Path: p.on(h, fslock.DefaultGroup, "job", "job.locked")})
					holder.must(t, order{Do: "release"})
					requireSilly(t, p)
					if dies {
						lab(t, "host", "crash", h.name)
					}
					require.NoError(t, acquire(t, p.source(t, other), "job", longOptions()).Release(within(t)))
					p.requireEmpty(t)
				})
			}
		})
	}
}

// On the reader's own host the leftover cannot be removed. A waiter there waits
// for the reader, or for another host.
func TestSillyRenameOnTheWaitersHost(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 20 seconds for each version")
	}
	eachVersion(t, func(t *testing.T, h host, _ []host) {
		p := newPlace(t)
		lock := try(t, p.source(t, h), "job", longOptions())
		reader := openLockFile(t, p, h)
		require.NoError(t, lock.Release(within(t)))
		requireSilly(t, p)
		src, faulty := p.gatedSource(t, h)
		refused := make(chan struct{})
		faulty.Inject(busyLeftover(refused))
		waiter, ctx := make(chan error, 1), within(t)
		go func() {
			_, err := multilock.Acquire(ctx, src, "job", longOptions())
			waiter <- err
		}()
		select {
		case <-refused:
		case <-ctx.Done():
			require.FailNow(t, "the waiter never tried to clear the leftover")
		}
		require.NoError(t, reader.Close())
		require.NoError(t, <-waiter)
	})
}

// A breaker on the reader's host leaves no leftover in the lock's directory: the lock is
// free at once, however long the reader goes on.
func TestBreakOnTheReadersHost(t *testing.T) {
	eachVersion(t, func(t *testing.T, h host, others []host) {
		p := newPlace(t)
		plant(t, p.source(t, others[0]), "job", long)
		reader := openLockFile(t, p, h)
		src := p.source(t, h)
		_, err := multilock.Break(within(t), src, "job", multilock.Want{Alive: true})
		require.NoError(t, err)
		require.NoError(t, try(t, src, "job", longOptions()).Release(within(t)))
		require.NoError(t, reader.Close())
		eventually(t, "nothing is left in staging", func() bool { return len(p.entries(t, ".multilock", "staging")) == 0 })
	})
}

// busyLeftover tells when the kernel has refused to remove a leftover.
func busyLeftover(refused chan<- struct{}) faultfs.Injector {
	var once sync.Once
	return func(op faultfs.Op) error {
		if op.Phase == faultfs.After && op.Kind == "unlink" && strings.Contains(op.Real, "/.nfs") && errors.Is(op.Err, syscall.EBUSY) {
			once.Do(func() { close(refused) })
		}
		return nil
	}
}
