package fslock_test

import (
	"fmt"
	"os"
	"path/filepath"
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

// The reply to the MKDIR of a staged lock was lost, and its repetition found the
// directory: nobody else knows its name, so that is no reason to fail.
func TestLostReplyOfTheStaging(t *testing.T) {
	for _, s := range modes() {
		t.Run(s.name, func(t *testing.T) {
			base, faulty, src := contested(t, s)
			faulty.Inject(at("mkdir", faultfs.After, "", times(1, answering(syscall.EEXIST))))
			requireOurs(t, base, src)
			requireTidy(t, base)
		})
	}
}

// A server that answers so for ever is told as what it is.
func TestStagingThatNeverSucceeds(t *testing.T) {
	base, faulty, src := contested(t, scene{})
	faulty.Inject(answersLate("mkdir", syscall.EEXIST))
	_, err := src.Contend(t.Context(), sweptName, longClaim(), source.Patience{})
	require.ErrorIs(t, err, syscall.EEXIST)
	requireTidy(t, base)
}

// N9: on its reader's own host a leftover of NFS cannot be removed (EBUSY): it is
// in the way as a holder is, until the reader closes it.
func TestLeftoverThatIsStillRead(t *testing.T) {
	base, faulty, src := contested(t, scene{})
	emptyDirectory(t, base, sweptName)
	stray := filepath.Join(lockPath(base), ".nfs0001")
	require.NoError(t, os.WriteFile(stray, nil, 0o666))
	hourAgo := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(lockPath(base), hourAgo, hourAgo))
	unlinking := func(verdict func(faultfs.Op) error) faultfs.Injector {
		return at("unlink", faultfs.Before, stray, verdict)
	}
	faulty.Inject(unlinking(answering(syscall.EBUSY)))
	_, err := multilock.TryAcquire(within(t), src, sweptName, multilock.Options{})
	require.ErrorIs(t, err, source.ErrHeld)

	faulty.Inject(unlinking(times(5, answering(syscall.EBUSY))))
	lock, err := multilock.Acquire(within(t), src, sweptName, multilock.Options{TTL: long})
	require.NoError(t, err)
	giveBack(t, lock)
	requireTidy(t, base)
}

// Its reader is named, and the lock is not called one that changes hands.
func TestReaderOfALeftoverIsNamed(t *testing.T) {
	base, faulty, src := contested(t, scene{})
	emptyDirectory(t, base, sweptName)
	stray := filepath.Join(lockPath(base), ".nfs000000000000002a00000007")
	reader, err := os.Create(stray)
	require.NoError(t, err)
	hourAgo := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(lockPath(base), hourAgo, hourAgo))
	faulty.Inject(at("unlink", faultfs.Before, stray, answering(syscall.EBUSY)))
	_, err = multilock.TryAcquire(within(t), src, sweptName, multilock.Options{})
	require.ErrorIs(t, err, source.ErrHeld)
	require.ErrorContains(t, err, fmt.Sprintf("process %d", os.Getpid()))

	require.NoError(t, reader.Close())
	faulty.Inject(nil)
	requireOurs(t, base, src)
	requireTidy(t, base)
}

// The reply to the rename that breaks a lock was lost, and its repetition found nothing, or
// its mount gave up: what is in the trash shows whose work it was. So the history has the
// break, and nothing is left.
func TestLostReplyOfABreak(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.ENOENT, syscall.ESTALE, syscall.EIO, syscall.ETIMEDOUT} {
		t.Run(unix.ErrnoName(errno), func(t *testing.T) {
			base, faulty, src := contested(t, scene{})
			plant(t, open(t, fslock.Options{Base: base}), sweptName, claim(theDead(theSelf(t)), long, 0))
			faulty.Inject(at("rename", faultfs.After, lockedPath(base), answering(errno)))
			o := observe(t, src, sweptName, source.Patience{})
			lookUntil(t, o, source.StateDead, nil)
			require.NoError(t, o.Break(t.Context()))
			requireBroken(t, src, sweptName, "")
			require.Empty(t, namesIn(t, filepath.Join(base, ".multilock", "staging")))
			requireTidy(t, base)
		})
	}
}
