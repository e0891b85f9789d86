package fslock_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// tick is longer than file systems take to give a change another time than the one before.
const tick = 20 * time.Millisecond

func lockedPath(base string) string { return filepath.Join(lockPath(base), sweptName+".locked") }

// beating is a lease that has given signs of life, the last of them some time ago.
func beating(t *testing.T) (base string, faulty *faultfs.FS, src *fslock.Source, lease source.Lease) {
	t.Helper()
	base, faulty, src = contested(t, scene{})
	lease = contendAndTry(t, src, sweptName, longClaim())
	for range 2 {
		require.NoError(t, lease.Renew(t.Context()))
	}
	time.Sleep(tick)
	return base, faulty, src, lease
}

// A breaker has died between its two removals, or has not come to the second yet: the
// directory can still be touched. Or the directory is gone.
func TestHolderNoticesThatItsLockIsGone(t *testing.T) {
	for _, h := range holdings() {
		for _, remove := range []func(string) error{func(base string) error { return os.Remove(lockedPath(base)) }, func(base string) error { return os.RemoveAll(lockPath(base)) }} {
			base, _, lease := h.hold(t)
			require.NoError(t, remove(base))
			require.ErrorIs(t, lease.Renew(t.Context()), source.ErrLost)
			require.ErrorIs(t, lease.Release(t.Context()), source.ErrLost)
		}
	}
}

// A tidy administrator moves what looks left over; a server may forget a rename. The
// lock is whole then, but its name is free.
func TestHolderNoticesThatItsDirectoryWasMoved(t *testing.T) {
	t.Run("nfs", func(t *testing.T) {
		base, _, src, lease := beating(t)
		requireLostWhenMoved(t, base, src, lease)
	})
	t.Run("nfs, before its first sign of life", func(t *testing.T) {
		base, _, src := contested(t, scene{})
		requireLostWhenMoved(t, base, src, contendAndTry(t, src, sweptName, longClaim()))
	})
	t.Run("local", func(t *testing.T) {
		base := fresh(t)
		src := open(t, fslock.Options{Base: base})
		lease := contendAndTry(t, src, sweptName, longClaim())
		require.NoError(t, lease.Renew(t.Context()))
		requireLostWhenMoved(t, base, src, lease)
	})
}

// requireLostWhenMoved moves the lock away. Once the holder knows, it gets nothing any
// more that only a holder gets, and its release does not disturb a successor.
func requireLostWhenMoved(t *testing.T, base string, src *fslock.Source, lease source.Lease) {
	t.Helper()
	require.NoError(t, os.Rename(lockPath(base), filepath.Join(base, "moved")))
	require.ErrorIs(t, lease.Renew(t.Context()), source.ErrLost)
	next := contendAndTry(t, src, sweptName, longClaim())
	require.ErrorIs(t, lease.Renew(t.Context()), source.ErrLost)
	_, err := lease.Fence(t.Context())
	require.ErrorIs(t, err, source.ErrLost)
	_, err = lease.(source.Committer).Outcome(t.Context())
	require.ErrorIs(t, err, source.ErrLost)
	require.ErrorIs(t, lease.Release(t.Context()), source.ErrLost)
	require.NoError(t, next.Renew(t.Context()))
}

// Whoever may not look into the group any more does not know less than before.
func TestHolderMayNotLookIntoTheGroup(t *testing.T) {
	base, faulty, lease := held(t, scene{})
	refused := 0
	faulty.Inject(at("statname", faultfs.Before, lockPath(base), func(faultfs.Op) error {
		refused++
		return syscall.EACCES
	}))
	require.NoError(t, lease.Renew(t.Context()))
	require.Positive(t, refused, "nobody looked: nothing is shown")
}

// touching does something to the lock when the holder has looked at its directory and
// is about to touch it.
func touching(f func()) faultfs.Injector {
	return at("touch", faultfs.Before, "", func(faultfs.Op) error {
		f()
		return nil
	})
}

// A local file system lets a directory be touched that is gone.
func TestDirectoryGoesBeforeTheTouch(t *testing.T) {
	base, faulty, _, lease := beating(t)
	faulty.Inject(touching(func() { require.NoError(t, os.RemoveAll(lockPath(base))) }))
	require.ErrorIs(t, lease.Renew(t.Context()), source.ErrLost)
}

// The one change that a holder cannot see at its next sign of life: the lock file goes
// between its look and its touch, and the directory stays. Nobody has the lock then.
// As soon as somebody takes it, the holder knows.
func TestDirectoryIsEmptiedBeforeTheTouch(t *testing.T) {
	base, faulty, src, lease := beating(t)
	faulty.Inject(touching(func() { _ = os.Remove(lockedPath(base)) }))
	require.NoError(t, lease.Renew(t.Context()))
	faulty.Inject(nil)
	next := contendAndTry(t, src, sweptName, longClaim())
	require.ErrorIs(t, lease.Renew(t.Context()), source.ErrLost)
	require.NoError(t, next.Renew(t.Context()))
}

// What the holder itself does in the directory is no reason to lose the lock.
func TestHolderChangesItsOwnDirectory(t *testing.T) {
	base, _, _, lease := beating(t)
	require.NoError(t, os.WriteFile(filepath.Join(lockPath(base), sweptName+".result"), nil, 0o600))
	for range 3 {
		require.NoError(t, lease.Renew(t.Context()))
	}
	require.NoError(t, os.Remove(lockedPath(base)))
	require.ErrorIs(t, lease.Renew(t.Context()), source.ErrLost)
}

// The times that a look of somebody else on this host brought are not those that the
// touch left. What they hide comes to light after a while.
func TestEmptiedDirectoryComesToLight(t *testing.T) {
	requireComesToLight(t, func(base string) { _ = os.Remove(lockedPath(base)) })
}

func TestMovedDirectoryComesToLight(t *testing.T) {
	requireComesToLight(t, func(base string) { _ = os.Rename(lockPath(base), filepath.Join(base, "moved")) })
}

func requireComesToLight(t *testing.T, harm func(base string)) {
	t.Helper()
	base, faulty, _, lease := beating(t)
	faulty.Inject(touching(func() { harm(base) }))
	require.NoError(t, lease.Renew(t.Context()))
	faulty.Inject(nil)
	const often = 10
	require.Condition(t, func() bool {
		for range often {
			if errors.Is(lease.Renew(t.Context()), source.ErrLost) {
				return true
			}
		}
		return false
	})
}

// A mark that comes while the lock is being released comes after it: between the two
// removals it would be left in the way of the next one.
func TestMarkWhileTheLockIsReleased(t *testing.T) {
	base, faulty, src := contested(t, scene{})
	lease := contendAndTry(t, src, sweptName, jobClaim())
	marked, group := make(chan error, 1), someJob(theSelf(t))
	faulty.Inject(removing(base, faultfs.Before, func(faultfs.Op) error {
		go func() { marked <- lease.MarkJob(t.Context(), group) }()
		time.Sleep(tick)
		return nil
	}))
	release(t, lease)
	require.ErrorIs(t, <-marked, source.ErrReleased)
	require.Empty(t, namesIn(t, filepath.Join(base, fslock.DefaultGroup)))
}

// The note of an attempt that is over can be taken back, and another can follow.
func TestMarkIsTakenBack(t *testing.T) {
	base, _, src := contested(t, scene{})
	lease := contendAndTry(t, src, sweptName, jobClaim())
	mark := filepath.Join(lockPath(base), sweptName+".job")
	require.NoError(t, lease.MarkJob(t.Context(), process.Group{}), "there is none")
	for range 2 {
		require.NoError(t, lease.MarkJob(t.Context(), someJob(theSelf(t))))
		require.FileExists(t, mark)
		require.NoError(t, lease.MarkJob(t.Context(), process.Group{}))
		require.NoFileExists(t, mark)
	}
	release(t, lease)
	require.Empty(t, namesIn(t, filepath.Join(base, fslock.DefaultGroup)))
}

func theSelf(t *testing.T) process.Identity {
	t.Helper()
	self, err := process.Self()
	require.NoError(t, err)
	return self
}
