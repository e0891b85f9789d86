package fslock_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// modes are the two ways to contend.
func modes() []scene { return []scene{{name: "plain"}, {name: "legacy peers", legacy: true}} }

func lockPath(base string) string { return filepath.Join(base, fslock.DefaultGroup, sweptName) }

// contested is a used base directory, and a source on it with faults.
func contested(t *testing.T, s scene) (base string, faulty *faultfs.FS, src *fslock.Source) {
	t.Helper()
	base, faulty = fresh(t), sharedFS()
	src = open(t, fslock.Options{Base: base, FS: faulty, LegacyPeers: s.legacy})
	release(t, contendAndTry(t, src, "warm", longClaim()))
	return base, faulty, src
}

// placing is the rename that acquires the lock, in the given phase.
func placing(base string, phase faultfs.Phase, assessment func(faultfs.Op) error) faultfs.Injector {
	return at("rename", phase, lockPath(base), assessment)
}

// times applies the assessment to the first n operations.
func times(n int, assessment func(faultfs.Op) error) func(faultfs.Op) error {
	var count atomic.Int64
	return func(op faultfs.Op) error {
		if count.Add(1) > int64(n) {
			return nil
		}
		return assessment(op)
	}
}

func answering(err error) func(faultfs.Op) error {
	return func(faultfs.Op) error { return err }
}

// requireOurs acquires the lock without waiting, and releases it.
func requireOurs(t *testing.T, base string, src *fslock.Source) {
	t.Helper()
	lock, err := multilock.TryAcquire(within(t), src, sweptName, multilock.Options{TTL: long})
	require.NoError(t, err)
	require.Equal(t, lock.Record().Token, tokenOnDisk(t, base))
	giveBack(t, lock)
	require.Empty(t, namesIn(t, filepath.Join(base, fslock.DefaultGroup)))
}

// requireTheirs checks that the lease's lock is held.
func requireTheirs(t *testing.T, base string, src *fslock.Source, lease source.Lease) {
	t.Helper()
	_, err := multilock.TryAcquire(within(t), src, sweptName, multilock.Options{TTL: long})
	var held *multilock.HeldError
	require.ErrorAs(t, err, &held)
	require.Equal(t, lease.Record().Token, held.Observation.Record.Token)
	require.Equal(t, lease.Record().Token, tokenOnDisk(t, base))
	require.NoError(t, lease.Renew(t.Context()))
}

// N2: the rename took effect, its reply was lost, and the client gets the error of its repetition, or a
// timeout.
// Rule: rename
func TestLostReplyOfTheRename(t *testing.T) {
	for _, s := range modes() {
		for _, errno := range []syscall.Errno{
			syscall.ENOENT, syscall.EEXIST, syscall.ENOTEMPTY, syscall.ESTALE, syscall.EIO, syscall.ETIMEDOUT, syscall.EINTR,
		} {
			t.Run(s.name+"/"+unix.ErrnoName(errno), func(t *testing.T) {
				base, faulty, src := contested(t, s)
				faulty.Inject(placing(base, faultfs.After, times(1, answering(errno))))
				requireOurs(t, base, src)
				requireTidy(t, base)
			})
		}
	}
}

// N4: some clients report a rename that found nothing as a success.
// Rule: rename
func TestFalseSuccessOfTheRename(t *testing.T) {
	for _, s := range modes() {
		for name, spoil := range map[string]func(base string, op faultfs.Op) error{
			"nothing was done":      func(string, faultfs.Op) error { return nil },
			"the group was removed": func(base string, _ faultfs.Op) error { return os.RemoveAll(filepath.Dir(lockPath(base))) },
			"the staged was swept":  func(_ string, op faultfs.Op) error { return os.RemoveAll(op.Real) },
		} {
			t.Run(s.name+"/"+name, func(t *testing.T) {
				base, faulty, src := contested(t, s)
				faulty.Inject(placing(base, faultfs.Before, times(1, func(op faultfs.Op) error {
					return errors.Join(spoil(base, op), faultfs.ErrPretend)
				})))
				requireOurs(t, base, src)
				requireTidy(t, base)
			})
		}
	}
}

// N4: nor does a success count while another process's lock is in place.
// Rule: rename
func TestFalseSuccessOfTheRenameOntoALock(t *testing.T) {
	base, faulty, src := contested(t, scene{})
	holder := contendAndTry(t, src, sweptName, longClaim())
	faulty.Inject(placing(base, faultfs.Before, answering(faultfs.ErrPretend)))
	requireTheirs(t, base, src, holder)
}

// N6: a barrier removes the empty group while a contender tries.
// Rule: rename, barrier
func TestGroupIsRemovedUnderTheContender(t *testing.T) {
	base, faulty, src := contested(t, scene{})
	removeGroup := func(faultfs.Op) error {
		require.NoError(t, os.Remove(filepath.Dir(lockPath(base))))
		return nil
	}
	faulty.Inject(placing(base, faultfs.Before, times(20, removeGroup)))
	requireOurs(t, base, src)

	faulty.Inject(placing(base, faultfs.Before, removeGroup))
	_, err := multilock.TryAcquire(within(t), src, sweptName, multilock.Options{})
	require.ErrorContains(t, err, "does not hold still")
	require.NotErrorIs(t, err, source.ErrHeld)
	requireTidy(t, base)
}

// refusing is a file system on which a directory never replaces another one, not even an empty one.
func refusing(errno syscall.Errno) faultfs.Injector {
	return at("rename", faultfs.Before, "", func(op faultfs.Op) error {
		if _, err := os.Lstat(op.Target); err != nil {
			return nil //nolint:nilerr // nothing is in the way
		}
		return errno
	})
}

// N10: BeeGFS returns EEXIST, plain SFTP EPERM, some servers EACCES.
// Rule: rename, fs-test
func TestFileSystemThatNeverReplacesADirectory(t *testing.T) {
	for _, s := range modes() {
		for _, errno := range []syscall.Errno{syscall.EEXIST, syscall.ENOTEMPTY, syscall.EPERM, syscall.EACCES} {
			t.Run(s.name+"/"+unix.ErrnoName(errno), func(t *testing.T) {
				base, faulty := fresh(t), sharedFS()
				faulty.Inject(refusing(errno))
				src := open(t, fslock.Options{Base: base, FS: faulty, LegacyPeers: s.legacy})
				requireOurs(t, base, src)
				require.True(t, strings.HasSuffix(markIn(t, base), ".refuses"))
				if !s.legacy { // there an empty directory is a lock that is being acquired
					emptyDirectory(t, base, sweptName)
					requireOurs(t, base, src)
				}
				requireTheirs(t, base, src, contendAndTry(t, src, sweptName, longClaim()))
			})
		}
	}
}

// N18: the mount gave up on the rename, and the server carries it out later: at any of the operations that
// follow, or after all of them.
// Rule: rename, I4
func TestRenameThatIsCarriedOutLater(t *testing.T) {
	for _, s := range modes() {
		for _, errno := range []syscall.Errno{syscall.EIO, syscall.ETIMEDOUT} {
			t.Run(s.name+"/"+unix.ErrnoName(errno), func(t *testing.T) {
				for delay, over := 1, false; !over; delay++ {
					over = runZombie(t, s, errno, delay)
				}
			})
		}
	}
}

// zombie is a rename that waits in the server's queue.
type zombie struct {
	real, target string
	due          int
	landed       bool
}

func (z *zombie) inject(target string, errno syscall.Errno, delay int) faultfs.Injector {
	return func(op faultfs.Op) error {
		switch {
		case op.Phase == faultfs.After:
		case z.real == "" && op.Kind == "rename" && op.Target == target:
			z.real, z.target, z.due = op.Real, op.Target, op.N+delay
			return errno
		case z.real != "" && op.N == z.due:
			z.land()
		}
		return nil
	}
}

// land carries out the rename, which may find that there is nothing to do.
func (z *zombie) land() {
	z.landed = true
	_ = unix.Rename(z.real, z.target)
}

// runZombie reports whether the attempt was over before the rename landed.
func runZombie(t *testing.T, s scene, errno syscall.Errno, delay int) (over bool) {
	base, faulty, src := contested(t, s)
	var z zombie
	faulty.Inject(z.inject(lockPath(base), errno, delay))
	lock, err := multilock.TryAcquire(context.Background(), src, sweptName, multilock.Options{TTL: long})
	over = !z.landed
	z.land()
	faulty.Inject(nil)
	token := tokenOnDisk(t, base)
	if err == nil {
		require.Equal(t, lock.Record().Token, token)
		giveBack(t, lock)
	} else {
		require.NotErrorIs(t, err, source.ErrHeld)
		require.Empty(t, token, "a lock without an owner")
	}
	giveBack(t, take(t, base, s, elsewhere(t)))
	requireTidy(t, base)
	return over
}

// N12: a lock that was staged long ago does not look stale when it is acquired.
// Rule: arrival
func TestLockOfAPatientWaiterIsNotOld(t *testing.T) {
	base, _, src := contested(t, scene{})
	holder := contendAndTry(t, src, sweptName, longClaim())
	waiter := contend(t, src, sweptName, sweptClaim())
	refuse(t, waiter)
	ageStaged(t, base)
	time.Sleep(sweptBeat)
	release(t, holder)
	start := time.Now()
	try(t, waiter)
	seen := look(t, observe(t, src, sweptName, source.StalePolicy{}))
	require.LessOrEqual(t, seen.Silence, time.Since(start)+time.Second)
}

// Around the rename: a removed directory is made again, and any other error is reported.
// Rule: rename, I4
func TestAttemptMeetsAnError(t *testing.T) {
	lock := filepath.Join(fslock.DefaultGroup, sweptName)
	for name, c := range map[string]struct {
		scene  scene
		inject faultfs.Injector
		told   syscall.Errno // 0 if the attempt goes on
	}{
		"the group was removed":            {scene{}, denyingAt("enter", fslock.DefaultGroup, syscall.ESTALE, 1), 0},
		"the group may not be opened":      {scene{}, denyingAt("enter", fslock.DefaultGroup, syscall.EACCES, -1), syscall.EACCES},
		"the group was removed, legacy":    {modes()[1], denyingAt("mkdir", lock, syscall.ESTALE, 1), 0},
		"the lock may not be made, legacy": {modes()[1], denyingAt("mkdir", lock, syscall.EACCES, -1), syscall.EACCES},
		"the rename is forbidden":          {scene{}, denyingAt("rename", lock, syscall.EACCES, -1), syscall.EACCES},
		"a holder was in the way":          {scene{}, denyingAt("rename", lock, syscall.EPERM, 3), 0},
		"holders take turns in the way": {scene{}, faultfs.Chain(
			denyingAt("rename", lock, syscall.EPERM, 3), denyingAt("rmdir", lock, syscall.EPERM, 3)), 0},
		"no room for what is staged anew": {scene{}, faultfs.Chain(
			denyingAt("rename", lock, syscall.EIO, 1), denyingAt("mkdir", "staging/", syscall.ENOSPC, -1)), syscall.ENOSPC},
	} {
		t.Run(name, func(t *testing.T) {
			base, _, warm := contested(t, c.scene)
			closed(t, warm)
			faulty := sharedFS()
			src := open(t, fslock.Options{Base: base, FS: faulty, LegacyPeers: c.scene.legacy})
			waiter := contend(t, src, sweptName, longClaim())
			faulty.Inject(c.inject)
			lease, err := waiter.Try(t.Context())
			if c.told == syscall.ENOSPC { // the first attempt was in doubt, and is withdrawn
				require.ErrorIs(t, err, syscall.EIO)
				lease, err = waiter.Try(t.Context())
			}
			faulty.Inject(nil)
			if c.told != 0 {
				require.ErrorIs(t, err, c.told)
				lease, err = waiter.Try(t.Context())
			}
			require.NoError(t, err)
			release(t, lease)
			closed(t, waiter)
			require.NoError(t, src.Close())
			requireClosed(t, base)
			requireTidy(t, base)
		})
	}
}

// A lock that cannot be staged completely is not staged.
// Rule: stage
func TestStagingMeetsAnError(t *testing.T) {
	for _, c := range []struct{ kind, part string }{
		{"mkdir", "/" + sweptName + ".lock"}, {"mkdir", "staging/"}, {"enter", "/staging"},
	} {
		base, faulty, _ := contested(t, modes()[1])
		src := open(t, fslock.Options{Base: base, FS: faulty, LegacyPeers: true})
		faulty.Inject(denyingAt(c.kind, c.part, syscall.ENOSPC, -1))
		_, err := src.Contend(t.Context(), sweptName, longClaim(), source.StalePolicy{})
		require.ErrorIs(t, err, syscall.ENOSPC)
		requireTidy(t, base)
	}
}

// The rename took effect, but for a while every look shows a free lock. The abandoned lock is in place: a
// contender that finds it later removes it, and does not wait for itself.
// Rule: rename, I3
func TestOwnLockThatWasGivenUp(t *testing.T) {
	for _, s := range modes() {
		t.Run(s.name, func(t *testing.T) {
			base, faulty, src := contested(t, s)
			faulty.Inject(denyingAt("opendir", filepath.Join(fslock.DefaultGroup, sweptName), syscall.ENOENT, 4))
			lock, err := multilock.Acquire(within(t), src, sweptName, multilock.Options{TTL: long, Poll: 10 * time.Millisecond})
			require.NoError(t, err)
			require.Equal(t, lock.Record().Token, tokenOnDisk(t, base))
			giveBack(t, lock)
			require.Empty(t, namesIn(t, filepath.Join(base, fslock.DefaultGroup)))
		})
	}
}
