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

// A lock that was moved, or whose rename the server has forgotten, is whole, and nowhere:
// a successor draws smaller numbers. So its holder gets none.
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

// often is how many signs of life a holder gives until it has looked at everything.
const often = 10

// lostWithin gives signs of life until one says that the lock is lost.
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

// Who moves the base or the group moves the locks in it. Their holders notice, whether or
// not others have made it again.
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

// The way to the base is the one from where this process was when it opened it.
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

// What cannot be looked up proves nothing: neither the base nor, in it, the group.
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

// Nor does a group that does not answer.
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

// A lock may be found dead, and its group be moved before it is broken. It is broken all
// the same; that there is no group where there was one is nobody's trouble.
func TestBreakOfALockWhoseGroupWasMoved(t *testing.T) {
	base := fresh(t)
	src := open(t, fslock.Options{Base: base, FS: sharedFS()})
	plant(t, src, sweptName, abandonedBy(theDead(self(t))))
	o := observe(t, src, sweptName, source.Patience{})
	require.Equal(t, source.StateDead, look(t, o).State)
	require.NoError(t, os.Rename(filepath.Join(base, fslock.DefaultGroup), filepath.Join(base, "moved")))
	requireVacant(t, src, true)
	require.NoError(t, o.Break(t.Context()))
	require.NoFileExists(t, filepath.Join(base, "moved", sweptName, sweptName+".locked"))
}

// By force nothing is broken where nothing is.
func TestForceOfNothing(t *testing.T) {
	_, _, src := contested(t, scene{})
	o := observe(t, src, sweptName, source.Patience{})
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
