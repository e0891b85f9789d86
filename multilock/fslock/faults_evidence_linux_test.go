package fslock_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// In a bubble the observer's clock runs arbitrarily fast, and the server's, which is that of real files,
// almost stands still.

func minuteClaim() source.Claim {
	return source.Claim{TTL: 10 * time.Second, Heartbeat: time.Second}
}

// A carried-forward reading of the server's clock is as inaccurate as the local clock, or as the server's
// own if that was set back meanwhile. It does not make a holder stale: the clock is read again first.
// Rule: server-clock
func TestSilenceByACarriedClockIsNotBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base, _, src := contested(t, scene{})
		holder := contendAndTry(t, src, sweptName, minuteClaim())
		o := observe(t, open(t, fslock.Options{Base: base, FS: sharedFS(), Self: elsewhere(t)}), sweptName, source.StalePolicy{})
		require.Equal(t, source.StateHeld.String(), look(t, o).State.String())
		time.Sleep(50 * time.Second)
		require.NoError(t, holder.Renew(t.Context()))
		for range 20 { // longer than the window
			seen := look(t, o)
			require.Equal(t, source.StateHeld.String(), seen.State.String(), seen.Why)
			require.Less(t, seen.Silence, 10*time.Second)
			require.ErrorIs(t, o.Break(t.Context()), source.ErrHeld)
			time.Sleep(250 * time.Millisecond)
		}
	})
}

// If only the reading of the server's clock is slow, each sample comes quickly, but too long after the one
// before: the lock was not watched in between.
// Rule: silence, server-clock
func TestSlowClockBetweenQuickSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base, _, src := contested(t, scene{})
		claim := source.Claim{TTL: 20 * time.Second, Heartbeat: 4 * time.Second} // watched for 6 s
		contendAndTry(t, src, sweptName, claim)
		faulty := sharedFS()
		o := observe(t, open(t, fslock.Options{Base: base, FS: faulty, Self: elsewhere(t)}), sweptName, source.StalePolicy{})
		look(t, o)
		ageLock(t, base, time.Hour)
		faulty.Inject(slowClock(claim.Heartbeat + time.Second))
		for range 40 {
			require.NotEqual(t, source.StateDead.String(), look(t, o).State.String())
			require.ErrorIs(t, o.Break(t.Context()), source.ErrHeld)
			time.Sleep(time.Second)
		}
		faulty.Inject(nil)
		lookUntil(t, o, source.StateDead, nil)
	})
}

// A reading of the server's clock that took a minute may be a minute late. A heartbeat after it does not
// prove that the clock was set back.
// Rule: server-clock, silence
func TestOutageIsNoClockSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base, _, src := contested(t, scene{})
		contendAndTry(t, src, sweptName, minuteClaim())
		faulty := sharedFS()
		o := observe(t, open(t, fslock.Options{Base: base, FS: faulty, Self: elsewhere(t)}), sweptName, source.StalePolicy{})
		faulty.Inject(slowClock(time.Minute))
		look(t, o)
		faulty.Inject(nil)
		ageLock(t, base, -50*time.Second)
		require.Equal(t, source.StateHeld.String(), look(t, o).State.String())
		ageLock(t, base, -80*time.Second)
		seen := look(t, o)
		require.Equal(t, source.StateSuspect.String(), seen.State.String())
		require.Contains(t, seen.Why, "set back")
	})
}

// A lock's age counts from its acquisition, not from the start of the wait.
// Rule: record
func TestAgeOfALockThatWasWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base, _, src := contested(t, scene{})
		c := contend(t, src, sweptName, minuteClaim())
		time.Sleep(minuteClaim().TTL / 2)
		prepared, err := filepath.Glob(filepath.Join(base, ".multilock", "staging", "*", sweptName+".locked"))
		require.NoError(t, err)
		before := serverTime(t, base)
		require.NoError(t, os.Chtimes(prepared[0], time.Time{}, before.Add(-time.Hour)))
		try(t, c)
		closed(t, c)
		info, err := os.Stat(filepath.Join(lockPath(base), sweptName+".locked"))
		require.NoError(t, err)
		require.False(t, info.ModTime().Before(before), "%v before %v", info.ModTime(), before)
	})
}

// ageLock sets the lock's last heartbeat back by age.
func ageLock(t *testing.T, base string, age time.Duration) {
	t.Helper()
	times := []unix.Timespec{unix.NsecToTimespec(serverTime(t, base).Add(-age).UnixNano()), unix.NsecToTimespec(serverTime(t, base).Add(-age).UnixNano())}
	require.NoError(t, unix.UtimesNanoAt(unix.AT_FDCWD, lockPath(base), times, 0))
}

// serverTime is the clock of the file system, independent of the bubble's.
func serverTime(t *testing.T, base string) time.Time {
	t.Helper()
	now, err := open(t, fslock.Options{Base: base, FS: sharedFS()}).Now(t.Context())
	require.NoError(t, err)
	return now
}

// A job file that the server did not return is no proof that there is no job: while the server does not
// answer, a lock whose holder was killed is not taken over, however long it has sent no heartbeat.
// Rule: job
func TestUnansweredMarkIsNoProof(t *testing.T) {
	for _, kind := range []string{"open", "read"} {
		for _, errno := range []syscall.Errno{syscall.EIO, syscall.ETIMEDOUT, syscall.EINTR} {
			t.Run(kind+"/"+unix.ErrnoName(errno), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { unansweredMark(t, kind, errno) })
			})
		}
	}
}

func unansweredMark(t *testing.T, kind string, errno syscall.Errno) {
	base, _, src := contested(t, scene{})
	claim := minuteClaim()
	claim.Job, claim.Holder.Identity = true, theDead(self(t))
	holder := contendAndTry(t, src, sweptName, claim)
	job, err := process.FindGroup(syscall.Getpgrp())
	require.NoError(t, err)
	require.NoError(t, holder.MarkJob(t.Context(), job))
	ageLock(t, base, time.Hour)

	faulty := sharedFS()
	o := observe(t, open(t, fslock.Options{Base: base, FS: faulty}), sweptName, source.StalePolicy{})
	faulty.Inject(denyingAt(kind, ".job", errno, -1))
	for range 20 { // longer than the window
		_, err := o.Look(t.Context())
		require.ErrorIs(t, err, errno)
		require.ErrorIs(t, o.Break(t.Context()), source.ErrHeld)
		time.Sleep(250 * time.Millisecond)
	}
	faulty.Inject(nil)
	seen := look(t, o)
	require.Equal(t, source.StateHeld.String(), seen.State.String())
	require.Contains(t, seen.Why, "its job lives")
}

// A heartbeat counts from when it was sent: however slow the reply is, the holder does not trust its lock
// for longer than others do.
// Rule: validity
func TestBeliefCountsFromBeforeTheSign(t *testing.T) {
	const slow = 100 * time.Millisecond
	for name, c := range map[string]struct {
		waits time.Duration // before it acquires the lock
		kind  string        // the operation whose reply is slow
	}{
		"the directory is made":           {0, "mkdir"},
		"its file is made":                {0, "opendurable"},
		"the staged lock is made young":   {6 * time.Second, "touchfile"},
		"a first sign is given, for late": {4 * time.Second, "touch"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				base, faulty, src := contested(t, scene{})
				var rival source.Lease
				if c.waits > 0 {
					rival = contendAndTry(t, open(t, fslock.Options{Base: base, FS: sharedFS()}), sweptName, longClaim())
				}
				faulty.Inject(at(c.kind, faultfs.After, "", func(faultfs.Op) error {
					time.Sleep(slow)
					return nil
				}))
				waiter := contend(t, src, sweptName, minuteClaim())
				if c.waits > 0 {
					refuse(t, waiter)
					time.Sleep(c.waits)
					release(t, rival)
				}
				lease := try(t, waiter)
				require.GreaterOrEqual(t, lease.Since().Elapsed(), slow)
			})
		})
	}
}

// A watched directory that was emptied is not a lock any more.
// Rule: I3
func TestLookAtALockWhoseFileIsGone(t *testing.T) {
	base, _, src := contested(t, scene{})
	contendAndTry(t, src, sweptName, longClaim())
	o := observe(t, src, sweptName, source.StalePolicy{})
	require.Equal(t, source.StateHeld, look(t, o).State)
	require.NoError(t, os.Remove(lockedPath(base)))
	require.Equal(t, source.StateFree, look(t, o).State)
	again := contendAndTry(t, src, sweptName, longClaim())
	seen := look(t, o)
	require.Equal(t, source.StateHeld, seen.State)
	require.Equal(t, again.Record().Token, seen.Record.Token)
}

// A directory that cannot be listed does not count as empty.
// Rule: orphan
func TestLookAtAnOrphanThatCannotBeListed(t *testing.T) {
	base, faulty, src := contested(t, scene{})
	emptyDirectory(t, base, sweptName)
	require.NoError(t, os.WriteFile(filepath.Join(lockPath(base), ".nfs0001"), nil, 0o666))
	faulty.Inject(denyingAt("list", sweptName, syscall.EIO, 1))
	o := observe(t, src, sweptName, source.StalePolicy{})
	_, err := o.Look(t.Context())
	require.ErrorIs(t, err, syscall.EIO)
	require.True(t, look(t, o).Orphan)
}

// The first look reports for how long the holder has sent no heartbeat.
// Rule: silence
func TestLookTellsTheSilence(t *testing.T) {
	base, _, src := contested(t, scene{})
	contendAndTry(t, src, sweptName, longClaim())
	ageLock(t, base, time.Minute)
	seen := look(t, observe(t, src, sweptName, source.StalePolicy{}))
	require.GreaterOrEqual(t, seen.Silence, time.Minute-time.Second)
}

// The directory of the fence numbers may be removed while it is open: it is made again, and the numbers
// start over. Any other error is returned.
// Rule: fence
func TestFenceWhoseDirectoryIsGone(t *testing.T) {
	base, faulty, lease := held(t, scene{})
	for _, part := range []string{"groups", filepath.Join("groups", fslock.DefaultGroup, "fence")} {
		fence(t, lease)
		require.NoError(t, os.RemoveAll(filepath.Join(base, ".multilock", part)))
		require.EqualValues(t, 1, fence(t, lease))
	}
	faulty.Inject(denyingAt("openappenddurable", "fence/"+sweptName, syscall.EIO, 1))
	_, err := lease.Fence(t.Context())
	require.ErrorIs(t, err, syscall.EIO, "it was not tried again")
	fence(t, lease)
}

// The directory used to read the clock may be removed while it is open: it is made again.
// Rule: server-clock
func TestClockWhoseDirectoryIsGone(t *testing.T) {
	base, _, src := contested(t, scene{})
	require.NoError(t, os.RemoveAll(filepath.Join(base, ".multilock", "staging")))
	_, err := src.Now(t.Context())
	require.NoError(t, err)
}
