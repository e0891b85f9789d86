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
	"github.com/multilock/go/multilock/vfs"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// holding is a kind of lease on which a test acts.
type holding struct {
	name string
	kind vfs.FileSystem
	// signs means that it has sent heartbeats.
	signs bool
	// blind means that a release checks nothing before it removes the lock file.
	blind bool
}

func holdings() []holding {
	nfs, local := vfs.FileSystem{Type: "test", NFS: true}, vfs.FileSystem{Type: "test", Local: true}
	return []holding{
		{name: "nfs, for a moment", kind: nfs, blind: true},
		{name: "nfs, with heartbeats", kind: nfs, signs: true},
		{name: "local, for a moment", kind: local},
		{name: "local, with heartbeats", kind: local, signs: true},
	}
}

// allHoldings adds one for which it is unknown whether a file was replaced.
func allHoldings() []holding {
	return append(holdings(), holding{name: "another, for a moment", kind: vfs.FileSystem{Type: "test", ManyClocks: true}})
}

// hold acquires the lock in a base directory that has been used before.
func (h holding) hold(t *testing.T) (base string, faulty *faultfs.FS, lease source.Lease) {
	t.Helper()
	base, faulty = fresh(t), faultfs.New(vfs.OS{}, nil)
	faulty.Describe(h.kind)
	src := open(t, fslock.Options{Base: base, FS: faulty})
	release(t, contendAndTry(t, src, "warm", longClaim()))
	lease = contendAndTry(t, src, sweptName, longClaim())
	if h.signs {
		require.NoError(t, lease.Renew(t.Context()))
		time.Sleep(tick)
	}
	return base, faulty, lease
}

// The server carries out the removal, its reply is lost, a waiter acquires the lock, and the client repeats
// the request: it finds nothing. The lock was not broken. A release that has checked knows that; another
// one must not claim it.
// Rule: release
func TestReleaseIsSentTwiceAroundAWaiter(t *testing.T) {
	for _, h := range allHoldings() {
		for _, errno := range []syscall.Errno{syscall.ENOENT, syscall.ESTALE} {
			t.Run(h.name+"/"+errno.Error(), func(t *testing.T) {
				base, faulty, lease := h.hold(t)
				var next source.Lease
				faulty.Inject(removing(base, faultfs.After, times(1, func(faultfs.Op) error {
					next = contendAndTry(t, open(t, fslock.Options{Base: base, FS: sharedFS()}), sweptName, longClaim())
					return errno
				})))
				err := lease.Release(t.Context())
				if h.blind {
					require.ErrorIs(t, err, source.ErrUnsure)
					require.NotErrorIs(t, err, source.ErrLost)
				} else {
					require.NoError(t, err)
				}
				require.ErrorIs(t, lease.Release(t.Context()), source.ErrReleased)
				require.NoError(t, next.Renew(t.Context()))
			})
		}
	}
}

// The same without a waiter: the directory is still there, so the lock did not change hands.
// Rule: release
func TestReleaseIsSentTwice(t *testing.T) {
	for _, h := range allHoldings() {
		t.Run(h.name, func(t *testing.T) {
			base, faulty, lease := h.hold(t)
			faulty.Inject(removing(base, faultfs.After, times(1, answering(syscall.ENOENT))))
			release(t, lease)
			require.NoDirExists(t, lockPath(base))
		})
	}
}

// removing is the removal of the lock file, in the given phase.
func removing(base string, phase faultfs.Phase, assessment func(faultfs.Op) error) faultfs.Injector {
	return at("unlink", phase, lockedPath(base), assessment)
}

// Whether or not another process holds the lock by now, the release of a broken lock never reports success.
// Rule: release, loss
func TestReleaseNeverHidesALoss(t *testing.T) {
	for _, h := range allHoldings() {
		for name, taken := range map[string]bool{"free": false, "taken": true} {
			t.Run(h.name+"/"+name, func(t *testing.T) {
				base, _, lease := h.hold(t)
				plain := open(t, fslock.Options{Base: base, FS: sharedFS()})
				_, err := multilock.Break(within(t), plain, sweptName, multilock.BreakOptions{Alive: true})
				require.NoError(t, err)
				if taken {
					contendAndTry(t, plain, sweptName, longClaim())
				}
				err = lease.Release(t.Context())
				if h.blind {
					require.ErrorIs(t, err, source.ErrUnsure)
				} else {
					require.ErrorIs(t, err, source.ErrLost)
				}
			})
		}
	}
}

// A Python peer makes the directory and fills it later. Without --legacy-peers our rename replaces that
// directory, and the peer's rename our lock file. Our lock is then lost, and the file there is the peer's.
// Rule: python, loss
func TestPeerRenamesItsFileOverOurs(t *testing.T) {
	calls := map[string]func(source.Lease) error{
		"heartbeat": func(l source.Lease) error { return l.Renew(t.Context()) },
		"fence":     func(l source.Lease) error { _, err := l.Fence(t.Context()); return err },
		"outcome":   func(l source.Lease) error { _, err := committer(l).Outcome(t.Context()); return err },
		"release":   func(source.Lease) error { return source.ErrLost },
	}
	for _, h := range holdings() {
		for name, call := range calls {
			t.Run(h.name+"/"+name, func(t *testing.T) {
				if h.blind && name == "release" {
					t.Skip("that it takes away the peer's lock file is what docs/protocol.md says")
				}
				base, _, lease := h.hold(t)
				theirs := renamePeersFile(t, base)
				require.ErrorIs(t, call(lease), source.ErrLost)
				require.ErrorIs(t, lease.Release(t.Context()), source.ErrLost)
				kept, err := os.ReadFile(lockedPath(base))
				require.NoError(t, err)
				require.Equal(t, theirs, string(kept))
			})
		}
	}
}

func renamePeersFile(t *testing.T, base string) (content string) {
	t.Helper()
	content = "elsewhere 4711"
	file := filepath.Join(lockPath(base), sweptName+".lock")
	require.NoError(t, os.WriteFile(file, []byte(content), 0o666))
	require.NoError(t, os.Rename(file, lockedPath(base)))
	return content
}

// If a lock is lost because its directory was moved, its release removes the lock file there, as long as
// the file is ours.
// Rule: loss, I2
func TestReleaseOfALostLockRemovesOnlyItsOwnFile(t *testing.T) {
	for name, foreign := range map[string]bool{"ours": false, "a peer's": true} {
		t.Run(name, func(t *testing.T) {
			base, _, lease := holdings()[1].hold(t)
			moved := filepath.Join(base, "moved")
			require.NoError(t, os.Rename(lockPath(base), moved))
			require.ErrorIs(t, lease.Renew(t.Context()), source.ErrLost)
			file := filepath.Join(moved, sweptName+".locked")
			if foreign {
				require.NoError(t, os.Remove(file))
				require.NoError(t, os.WriteFile(file, []byte("elsewhere 4711"), 0o666))
			}
			require.ErrorIs(t, lease.Release(t.Context()), source.ErrLost)
			_, err := os.Stat(file)
			require.Equal(t, foreign, err == nil)
		})
	}
}

// The reply to the MKDIR of a staged lock was lost, and its repetition found the directory: its name is
// random, so that is no reason to fail.
// Rule: stage
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

// If the server always answers like that, the error is reported.
// Rule: stage
func TestStagingThatNeverSucceeds(t *testing.T) {
	base, faulty, src := contested(t, scene{})
	faulty.Inject(answersLate("mkdir", syscall.EEXIST))
	_, err := src.Contend(t.Context(), sweptName, longClaim(), source.StalePolicy{})
	require.ErrorIs(t, err, syscall.EEXIST)
	requireTidy(t, base)
}

// N9: on its reader's own host a leftover of NFS cannot be removed (EBUSY): it blocks the lock like a
// holder, until the reader closes it.
// Rule: orphan
func TestLeftoverThatIsStillRead(t *testing.T) {
	base, faulty, src := contested(t, scene{})
	emptyDirectory(t, base, sweptName)
	stray := filepath.Join(lockPath(base), ".nfs0001")
	require.NoError(t, os.WriteFile(stray, nil, 0o666))
	age(t, lockPath(base))
	unlinking := func(assessment func(faultfs.Op) error) faultfs.Injector {
		return at("unlink", faultfs.Before, stray, assessment)
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

// The message names its reader, and does not report a lock that changes hands.
// Rule: orphan
func TestReaderOfALeftoverIsNamed(t *testing.T) {
	base, faulty, src := contested(t, scene{})
	emptyDirectory(t, base, sweptName)
	stray := filepath.Join(lockPath(base), ".nfs000000000000002a00000007")
	reader, err := os.Create(stray)
	require.NoError(t, err)
	age(t, lockPath(base))
	faulty.Inject(at("unlink", faultfs.Before, stray, answering(syscall.EBUSY)))
	_, err = multilock.TryAcquire(within(t), src, sweptName, multilock.Options{})
	require.ErrorIs(t, err, source.ErrHeld)
	require.ErrorContains(t, err, fmt.Sprintf("process %d", os.Getpid()))

	require.NoError(t, reader.Close())
	faulty.Inject(nil)
	requireOurs(t, base, src)
	requireTidy(t, base)
}

// The reply to the rename that breaks a lock was lost, and its repetition found nothing, or the mount gave
// up: the trash shows which breaker did it. So the history has the break, and nothing is left over.
// Rule: break
func TestLostReplyOfABreak(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.ENOENT, syscall.ESTALE, syscall.EIO, syscall.ETIMEDOUT} {
		t.Run(unix.ErrnoName(errno), func(t *testing.T) {
			base, faulty, src := contested(t, scene{})
			plant(t, open(t, fslock.Options{Base: base}), sweptName, claim(theDead(self(t)), long, 0))
			faulty.Inject(at("rename", faultfs.After, lockedPath(base), answering(errno)))
			o := observe(t, src, sweptName, source.StalePolicy{})
			lookUntil(t, o, source.StateDead, nil)
			require.NoError(t, o.Break(t.Context()))
			requireBroken(t, src, sweptName, "")
			require.Empty(t, namesIn(t, filepath.Join(base, ".multilock", "staging")))
			requireTidy(t, base)
		})
	}
}
