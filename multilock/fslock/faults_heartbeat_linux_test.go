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
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// tick is longer than the step of the times of file systems.
const tick = 20 * time.Millisecond

func lockedPath(base string) string { return filepath.Join(lockPath(base), sweptName+".locked") }

// beating is a lease that has sent heartbeats, the last of them some time ago.
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

// A breaker has died between its two removals, or has not yet made the second one: the directory can still
// be touched. Or the directory is gone.
// Rule: heartbeat, loss
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

// An administrator moves what looks like a leftover, or a server loses a rename. The lock is then intact,
// but its name is free.
// Rule: heartbeat, loss
func TestHolderNoticesThatItsDirectoryWasMoved(t *testing.T) {
	for _, h := range holdings() {
		t.Run(h.name, func(t *testing.T) { requireLostWhenMoved(t, h) })
	}
}

// requireLostWhenMoved moves the lock away. Once the holder knows, every call that only a holder may make
// fails, and its release does not affect a later holder.
func requireLostWhenMoved(t *testing.T, h holding) {
	t.Helper()
	base, faulty, lease := h.hold(t)
	require.NoError(t, os.Rename(lockPath(base), filepath.Join(base, "moved")))
	require.ErrorIs(t, lease.Renew(t.Context()), source.ErrLost)
	next := contendAndTry(t, open(t, fslock.Options{Base: base, FS: faulty}), sweptName, longClaim())
	require.ErrorIs(t, lease.Renew(t.Context()), source.ErrLost)
	_, err := lease.Fence(t.Context())
	require.ErrorIs(t, err, source.ErrLost)
	_, err = lease.(source.Committer).Outcome(t.Context())
	require.ErrorIs(t, err, source.ErrLost)
	require.ErrorIs(t, lease.Release(t.Context()), source.ErrLost)
	require.NoError(t, next.Renew(t.Context()))
}

// A holder that may not look into the group any more does not count its lock as lost.
// Rule: heartbeat
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

// touching calls f after the holder has checked its directory, right before it touches it.
func touching(f func()) faultfs.Injector {
	return at("touch", faultfs.Before, "", func(faultfs.Op) error {
		f()
		return nil
	})
}

// A local file system allows touching a directory that is gone.
// Rule: heartbeat
func TestDirectoryGoesBeforeTheTouch(t *testing.T) {
	base, faulty, _, lease := beating(t)
	faulty.Inject(touching(func() { require.NoError(t, os.RemoveAll(lockPath(base))) }))
	require.ErrorIs(t, lease.Renew(t.Context()), source.ErrLost)
}

// One change is invisible to the holder at its next heartbeat: the lock file is removed between its look
// and its touch, and the directory stays. The lock is then free. As soon as another process acquires it,
// the holder knows.
// Rule: heartbeat
func TestDirectoryIsEmptiedBeforeTheTouch(t *testing.T) {
	base, faulty, src, lease := beating(t)
	faulty.Inject(touching(func() { _ = os.Remove(lockedPath(base)) }))
	require.NoError(t, lease.Renew(t.Context()))
	faulty.Inject(nil)
	next := contendAndTry(t, src, sweptName, longClaim())
	require.ErrorIs(t, lease.Renew(t.Context()), source.ErrLost)
	require.NoError(t, next.Renew(t.Context()))
}

// The holder's own changes in the directory do not make it lose the lock.
// Rule: heartbeat
func TestHolderChangesItsOwnDirectory(t *testing.T) {
	base, _, _, lease := beating(t)
	require.NoError(t, os.WriteFile(filepath.Join(lockPath(base), sweptName+".result"), nil, 0o600))
	for range 3 {
		require.NoError(t, lease.Renew(t.Context()))
	}
	time.Sleep(20 * time.Millisecond) // a tick of the kernel's clock: changes within one tick are invisible
	require.NoError(t, os.Remove(lockedPath(base)))
	require.ErrorIs(t, lease.Renew(t.Context()), source.ErrLost)
}

// The times from another look on this host are not those that the touch left. What they hide is found at a
// later heartbeat.
// Rule: heartbeat
func TestHarmBeforeTheTouchComesToLight(t *testing.T) {
	for name, harm := range map[string]func(base string) error{
		"emptied": func(base string) error { return os.Remove(lockedPath(base)) },
		"moved":   func(base string) error { return os.Rename(lockPath(base), filepath.Join(base, "moved")) },
	} {
		t.Run(name, func(t *testing.T) {
			base, faulty, _, lease := beating(t)
			faulty.Inject(touching(func() { _ = harm(base) }))
			require.NoError(t, lease.Renew(t.Context()))
			faulty.Inject(nil)
			require.Error(t, lostWithin(t, lease))
		})
	}
}

// A job file that is written during the release waits for the release: between the two removals it would
// block the next lock.
// Rule: release, job
func TestMarkWhileTheLockIsReleased(t *testing.T) {
	base, faulty, src := contested(t, scene{})
	lease := contendAndTry(t, src, sweptName, jobClaim())
	marked, group := make(chan error, 1), someJob(self(t))
	faulty.Inject(removing(base, faultfs.Before, func(faultfs.Op) error {
		go func() { marked <- lease.MarkJob(t.Context(), group) }()
		time.Sleep(tick)
		return nil
	}))
	release(t, lease)
	require.ErrorIs(t, <-marked, source.ErrReleased)
	require.Empty(t, namesIn(t, filepath.Join(base, fslock.DefaultGroup)))
}

// The job file of an attempt that is over can be removed, and another can follow.
// Rule: job
func TestMarkIsTakenBack(t *testing.T) {
	base, _, src := contested(t, scene{})
	lease := contendAndTry(t, src, sweptName, jobClaim())
	mark := filepath.Join(lockPath(base), sweptName+".job")
	require.NoError(t, lease.MarkJob(t.Context()), "there is none")
	for range 2 {
		require.NoError(t, lease.MarkJob(t.Context(), someJob(self(t))))
		require.FileExists(t, mark)
		require.NoError(t, lease.MarkJob(t.Context()))
		require.NoFileExists(t, mark)
	}
	release(t, lease)
	require.Empty(t, namesIn(t, filepath.Join(base, fslock.DefaultGroup)))
}

// A lock that was moved, or whose rename the server has lost, is intact, but not in its place: a later
// holder draws smaller numbers. So its holder gets none.
// Rule: fence, loss
func TestNoFenceForALockThatWasMoved(t *testing.T) {
	for _, h := range holdings() {
		t.Run(h.name, func(t *testing.T) {
			base, _, lease := h.hold(t)
			require.NoError(t, os.Rename(lockPath(base), filepath.Join(base, "moved")))
			next := contendAndTry(t, open(t, fslock.Options{Base: base, FS: sharedFS()}), sweptName, longClaim())
			number, err := lease.Fence(t.Context())
			require.ErrorIs(t, err, source.ErrLost)
			require.Zero(t, number)
			number, err = next.Fence(t.Context())
			require.NoError(t, err)
			require.Equal(t, uint64(2), number, "the byte of the loser is there")
		})
	}
}

// often is how many heartbeats a holder sends until it has made every check.
const often = 10

// lostWithin sends heartbeats until one reports that the lock is lost.
func lostWithin(t *testing.T, lease source.Lease) error {
	t.Helper()
	for range often {
		err := lease.Renew(t.Context())
		if errors.Is(err, source.ErrLost) {
			return err
		}
		require.NoError(t, err)
	}
	return nil
}

// If the base or the group is moved, its locks move, too. Their holders notice, whether or not the
// directory was made again.
// Rule: heartbeat, loss
func TestHolderNoticesThatTheWayToItsLockLeadsElsewhere(t *testing.T) {
	above := func(base string) string { return base }
	group := func(base string) string { return filepath.Join(base, fslock.DefaultGroup) }
	for _, h := range holdings() {
		for name, what := range map[string]func(base string) string{"base": above, "group": group} {
			for again, remake := range map[string]bool{"": false, ", made again": true} {
				t.Run(h.name+"/"+name+again, func(t *testing.T) {
					base, _, lease := h.hold(t)
					moved := what(base)
					require.NoError(t, os.Rename(moved, base+".moved"))
					t.Cleanup(func() { _ = os.RemoveAll(base + ".moved") })
					if remake {
						require.NoError(t, os.Mkdir(moved, 0o777))
					}
					require.ErrorContains(t, lostWithin(t, lease), "moved")
				})
			}
		}
	}
}

// The path to the base is relative to the working directory at the time of opening.
// Rule: heartbeat
func TestHolderGoesElsewhere(t *testing.T) {
	base := fresh(t)
	t.Chdir(base)
	require.NoError(t, os.Mkdir("locks", 0o777))
	for _, path := range []string{".", "locks", ""} {
		t.Chdir(base)
		src := open(t, fslock.Options{Base: path, FS: localFS()})
		lease := contendAndTry(t, src, sweptName, longClaim())
		t.Chdir(t.TempDir())
		require.NoError(t, lostWithin(t, lease))
		require.NoError(t, src.Close())
		require.NoError(t, lostWithin(t, lease), "locks outlive their source")
		release(t, lease)
	}
}

// A failed lookup of the base or of the group proves nothing.
// Rule: heartbeat
func TestHolderMayNotLookUpTheBase(t *testing.T) {
	for kind, path := range map[string]string{"opendir": ".", "statname": fslock.DefaultGroup} {
		for _, errno := range []syscall.Errno{syscall.EACCES, syscall.EIO, syscall.EMFILE} {
			t.Run(kind+" "+errno.Error(), func(t *testing.T) {
				base, faulty, lease := holdings()[1].hold(t)
				refused := 0
				faulty.Inject(at(kind, faultfs.Before, filepath.Join(base, path), func(faultfs.Op) error {
					refused++
					return errno
				}))
				require.NoError(t, lostWithin(t, lease))
				require.Positive(t, refused, "nobody looked: nothing is shown")
			})
		}
	}
}

// A group that does not answer does not prove a loss either.
// Rule: heartbeat
func TestHolderWhoseGroupDoesNotAnswer(t *testing.T) {
	for kind, path := range map[string]string{"stat": "", "statname": sweptName} {
		base, faulty, lease := held(t, scene{})
		faulty.Inject(at(kind, faultfs.Before, filepath.Join(base, fslock.DefaultGroup, path), answering(syscall.EIO)))
		err := lease.Renew(t.Context())
		require.ErrorIs(t, err, syscall.EIO)
		require.NotErrorIs(t, err, source.ErrLost)
		faulty.Inject(nil)
		require.NoError(t, lease.Renew(t.Context()))
	}
}

// A lock may be found dead, and its group moved before the break. It is broken all the same; that the group
// is gone is not an error.
// Rule: break
func TestBreakOfALockWhoseGroupWasMoved(t *testing.T) {
	base := fresh(t)
	src := open(t, fslock.Options{Base: base, FS: sharedFS()})
	plant(t, src, sweptName, abandonedBy(theDead(self(t))))
	o := observe(t, src, sweptName, source.StalePolicy{})
	require.Equal(t, source.StateDead, look(t, o).State)
	require.NoError(t, os.Rename(filepath.Join(base, fslock.DefaultGroup), filepath.Join(base, "moved")))
	requireEmpty(t, src, true)
	require.NoError(t, o.Break(t.Context()))
	require.NoFileExists(t, filepath.Join(base, "moved", sweptName, sweptName+".locked"))
}

// A forced break of a free lock breaks nothing.
// Rule: break
func TestForceOfNothing(t *testing.T) {
	_, _, src := contested(t, scene{})
	o := observe(t, src, sweptName, source.StalePolicy{})
	require.ErrorIs(t, o.Force(t.Context()), source.ErrFree)
	seen := look(t, o)
	require.Equal(t, []time.Duration{source.Unknown, source.Unknown}, []time.Duration{seen.Age, seen.Silence})
	require.ErrorIs(t, o.Force(t.Context()), source.ErrFree)
}

func localFS() *faultfs.FS {
	fs := faultfs.New(vfs.OS{}, nil)
	fs.Describe(vfs.FileSystem{Type: "test", Local: true})
	return fs
}
