package fslock_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/internal/testkit/sweep"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// disturbance is what happens to a look during an outage of the server: how long it takes, and how it
// fails.
type disturbance struct {
	name string
	at   func(look int) (time.Duration, error)
	rare bool // the observer itself looks too rarely
}

func (d disturbance) String() string { return d.name }

func disturbances() []disturbance {
	const slow = sweptBeat / 2 // a sample must take less than a quarter of a heartbeat; up to a whole one is no gap
	quiet := func(int) (time.Duration, error) { return 0, nil }
	return []disturbance{
		{name: "every look is slow", at: func(int) (time.Duration, error) { return slow, nil }},
		// A busy machine may stretch each pause to almost a heartbeat. Two of those fill a window; one does
		// not, however busy the machine is.
		{name: "every other look is slow", at: func(n int) (time.Duration, error) { return []time.Duration{0, slow}[n%2], nil }},
		{name: "every look fails", at: func(int) (time.Duration, error) { return 0, syscall.ETIMEDOUT }},
		{name: "every third look fails", at: func(n int) (time.Duration, error) { return 0, []error{nil, nil, syscall.EIO}[n%3] }},
		{name: "every other look fails", at: func(n int) (time.Duration, error) { return 0, []error{nil, syscall.EINTR}[n%2] }},
		{name: "every other handle is stale", at: func(n int) (time.Duration, error) { return 0, []error{nil, syscall.ESTALE}[n%2] }},
		{name: "looks are too far apart", at: quiet, rare: true},
	}
}

// N25: during an outage of the server no holder can send a heartbeat. A holder whose touch is in the
// server's queue must not be broken by a watcher whose looks are slow or fail, or that slept in between,
// however long that lasts.
// Rule: silence
func TestOutageIsNotSilence(t *testing.T) {
	sweep.SideBySide(t, disturbances(), func(t *testing.T, d disturbance) {
		base, _, src := contested(t, scene{})
		holder := contendAndTry(t, src, sweptName, sweptClaim())
		faulty := sharedFS()
		o := observe(t, open(t, fslock.Options{Base: base, FS: faulty, Self: elsewhere(t)}), sweptName, source.StalePolicy{})
		faulty.Inject(outage(base, d.at))
		requireSpared(t, o, d.rare)
		require.NoError(t, holder.Renew(t.Context()), "its touch came through in the end")
		faulty.Inject(nil)
		lookUntil(t, o, source.StateDead, nil) // it is judged dead later, if it sends no heartbeat
	})
}

// An outage that begins between a sample and the reading of the server's clock is over when the reading
// returns: the holder could not send a heartbeat during the outage, and was not watched.
// Rule: silence, server-clock
func TestOutageWhileTheClockIsReadIsNotSilence(t *testing.T) {
	for name, looks := range map[string]int{"at the first look": 1, "after a while of watching": 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base, _, src := contested(t, scene{})
			holder := contendAndTry(t, src, sweptName, slowClaim())
			faulty := sharedFS()
			o := observe(t, open(t, fslock.Options{Base: base, FS: faulty, Self: elsewhere(t)}), sweptName, source.StalePolicy{})
			faulty.Inject(denyingAt("touchfile", "/staging", syscall.EIO, -1))
			for range looks - 1 {
				require.NotEqual(t, source.StateDead.String(), look(t, o).State.String())
				time.Sleep(slowClaim().Heartbeat / 8)
			}
			faulty.Inject(slowClock(slowClaim().TTL + time.Second))
			seen := look(t, o)
			require.Equal(t, source.StateHeld.String(), seen.State.String(), seen.Why)
			require.ErrorIs(t, o.Break(t.Context()), source.ErrHeld)
			require.NoError(t, holder.Renew(t.Context()))
		})
	}
}

// slowClaim leaves time for some looks even on a busy machine.
func slowClaim() source.Claim {
	return source.Claim{TTL: 4 * time.Second, Heartbeat: 200 * time.Millisecond}
}

// slowClock delays the reading of the server's clock.
func slowClock(delay time.Duration) faultfs.Injector {
	return at("touchfile", faultfs.Before, "", func(op faultfs.Op) error {
		if filepath.Base(op.Real) == "staging" {
			time.Sleep(delay)
		}
		return nil
	})
}

// outage disturbs the samples that an observer takes.
func outage(base string, disturb func(look int) (time.Duration, error)) faultfs.Injector {
	var looks atomic.Int64
	return at("stat", faultfs.After, lockPath(base), func(faultfs.Op) error {
		delay, err := disturb(int(looks.Add(1)) - 1)
		time.Sleep(delay)
		return err
	})
}

// requireSpared looks for several times as long as it takes to judge a holder dead.
func requireSpared(t *testing.T, o source.Observer, rarely bool) {
	t.Helper()
	pause := sweptWindow / 6
	if rarely {
		pause = 2 * sweptBeat
	}
	for start := boottime.Now(); start.Elapsed() < 4*(sweptTTL+sweptWindow); time.Sleep(pause) {
		seen, err := o.Look(t.Context())
		if err == nil {
			require.NotEqual(t, source.StateDead.String(), seen.State.String(), seen.Why)
			require.NotEqual(t, source.StateFree.String(), seen.State.String())
		}
		require.ErrorIs(t, o.Break(t.Context()), source.ErrHeld)
	}
}

// putLockFile makes a lock whose last heartbeat is half an hour old.
func putLockFile(t *testing.T, base, name string, content []byte) {
	t.Helper()
	emptyDirectory(t, base, name)
	dir := filepath.Join(base, fslock.DefaultGroup, name)
	require.NoError(t, os.WriteFile(filepath.Join(dir, name+".locked"), content, 0o666))
	old := time.Now().Add(-30 * time.Minute)
	require.NoError(t, os.Chtimes(dir, old, old))
}

// N9: a client, or a FUSE mount, died that had a removed file open: its .nfs file stays forever. The lock
// is free, but cannot be acquired until that file is cleared.
// Rule: orphan
func TestSillyRenamedFileOfADeadClient(t *testing.T) {
	for _, name := range []string{".nfs000000000000002a", ".fuse_hidden0000002a00000001"} {
		base, _, src := contested(t, scene{})
		emptyDirectory(t, base, sweptName)
		stray := filepath.Join(lockPath(base), name)
		require.NoError(t, os.WriteFile(stray, nil, 0o666))
		_, err := multilock.TryAcquire(within(t), src, sweptName, multilock.Options{})
		require.ErrorIs(t, err, source.ErrHeld)
		require.ErrorContains(t, err, "no lock file")
		require.FileExists(t, stray)
		giveBack(t, take(t, base, scene{}, elsewhere(t)))
		requireTidy(t, base)
	}
}

// N9: a reader on the holder's own host had the lock file open while it was removed, and closes it a moment
// later.
// Rule: release, orphan
func TestReleaseOutlivesAReader(t *testing.T) {
	base, faulty, lease := held(t, scene{})
	silly := filepath.Join(lockPath(base), ".nfs0001")
	faulty.Inject(faultfs.Chain(
		removing(base, faultfs.After, func(faultfs.Op) error { return os.WriteFile(silly, nil, 0o666) }),
		at("list", faultfs.After, "", func(faultfs.Op) error { return os.Remove(silly) }),
	))
	release(t, lease)
	require.NoDirExists(t, lockPath(base))
}

// An observer that can neither make nor touch a directory (a read-only mount, another user's base) cannot
// read the server's clock. It judges by its own watching, and reports that.
// Rule: server-clock
func TestSilenceWithoutTheServersClock(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT, syscall.EACCES} {
		t.Run(unix.ErrnoName(errno), func(t *testing.T) {
			t.Parallel()
			base, _, src := contested(t, scene{})
			beats := source.Claim{TTL: 2 * time.Second, Heartbeat: 200 * time.Millisecond}
			holder := contendAndTry(t, src, "beats", beats)
			contendAndTry(t, src, "silent", beats)
			faulty := sharedFS()
			faulty.Inject(faultfs.Chain(denying("mkdir", errno, -1), denyingAt("touchfile", "/staging", errno, -1)))
			there := open(t, fslock.Options{Base: base, FS: faulty, Self: elsewhere(t)})

			seen, err := multilock.Inspect(t.Context(), there, "beats", source.StalePolicy{})
			require.NoError(t, err)
			require.Equal(t, source.StateSuspect.String(), seen.State.String(), seen.Why)
			require.Contains(t, seen.Why, "clock cannot be read from here ("+errno.Error()+")")
			require.Equal(t, source.Unknown, seen.Silence)

			o, renewed := observe(t, there, "beats", source.StalePolicy{}), false
			alive := lookUntil(t, o, source.StateHeld, func(source.Observation) {
				renewed = true
				require.NoError(t, holder.Renew(t.Context()))
			})
			require.True(t, renewed)
			require.Contains(t, alive.Why, "sent a heartbeat")

			broken, err := multilock.Break(within(t), there, "silent", multilock.BreakOptions{})
			require.NoError(t, err)
			require.Contains(t, broken.Why, "no heartbeat for 2")
			seen, err = multilock.Inspect(t.Context(), src, "silent", source.StalePolicy{})
			require.NoError(t, err)
			require.Equal(t, source.StateFree.String(), seen.State.String())
		})
	}
}

// A waiter retries while nothing can be written, or the server does not answer, before it has staged
// anything and later.
// Rule: none (waiting)
func TestWaiterOutlastsABadMoment(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.ETIMEDOUT, syscall.EMFILE} {
		for when, staged := range map[string]int{"before the wait": 0, "in the wait": 1} {
			t.Run(unix.ErrnoName(errno)+"/"+when, func(t *testing.T) {
				t.Parallel()
				base, faulty, holder := held(t, scene{})
				troubles, got := make(chan error), make(chan error, 1)
				if staged == 0 {
					faulty.Inject(unwritable(errno))
				}
				waiter, ctx := open(t, fslock.Options{Base: base, FS: faulty}), within(t)
				go func() {
					lock, err := multilock.Acquire(ctx, waiter, sweptName, multilock.Options{
						Poll: 10 * time.Millisecond, Trouble: func(err error) { troubles <- err },
					})
					if err == nil {
						err = lock.Release(context.Background())
					}
					got <- err
				}()
				require.Eventually(t, func() bool { return len(namesIn(t, filepath.Join(base, ".multilock", "staging"))) >= staged }, watchdog, time.Millisecond)
				faulty.Inject(unwritable(errno))
				for range 2 {
					require.ErrorIs(t, <-troubles, errno)
				}
				faulty.Inject(nil)
				release(t, holder)
				for {
					select {
					case <-troubles: // reported by an attempt in progress
						continue
					case err := <-got:
						require.NoError(t, err)
					}
					break
				}
			})
		}
	}
}

// A missing permission is not transient.
// Rule: rename
func TestWaiterIsToldWhatDoesNotPass(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EACCES, syscall.EPERM, syscall.EXDEV} {
		base, faulty, _ := contested(t, scene{})
		faulty.Inject(unwritable(errno))
		_, err := multilock.Acquire(within(t), open(t, fslock.Options{Base: base, FS: faulty}), sweptName, multilock.Options{})
		require.ErrorIs(t, err, errno)
		require.NotErrorIs(t, err, source.ErrPassing)
	}
}

// unwritable fails the changes that an attempt makes.
func unwritable(errno syscall.Errno) faultfs.Injector {
	return func(op faultfs.Op) error {
		if op.Phase == faultfs.Before && slices.Contains([]string{"mkdir", "create", "opendurable", "rename"}, op.Kind) {
			return errno
		}
		return nil
	}
}
