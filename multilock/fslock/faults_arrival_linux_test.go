package fslock_test

import (
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// The clock of these tests is a bubble's, so that waiting takes no real time. The files are real, and so is
// the server's clock.
const (
	arrivalTTL  = 10 * time.Second
	arrivalBeat = time.Second
)

// arrival is how a waiter finds out that its lock, which was staged long ago, is in place.
type arrival struct {
	name string
	// answer is the result of the rename that places the lock, after it was carried out.
	answer    error
	heartbeat time.Duration
	// before means that the waiter also stops right before the rename.
	before bool
}

func arrivals() []arrival {
	return []arrival{
		{name: "its rename says so", heartbeat: arrivalBeat},
		{name: "its rename says so, and was late itself", heartbeat: arrivalBeat, before: true},
		{name: "its rename was sent twice", answer: syscall.ENOENT, heartbeat: arrivalBeat},
		{name: "its rename is in doubt", answer: syscall.EIO, heartbeat: arrivalBeat},
		{name: "a look finds it", answer: syscall.ENOTEMPTY, heartbeat: arrivalBeat},
		{name: "its rename says so, nobody will renew it"},
		{name: "its rename was sent twice, nobody will renew it", answer: syscall.ENOENT},
		{name: "a look finds it, nobody will renew it", answer: syscall.ENOTEMPTY},
	}
}

// A lock that was staged long ago looks stale as soon as it is in place. If its owner is suspended there, a
// breaker rightly finds it dead; the owner must not trust the lock when that breaker, after its last look,
// removes it.
// Rule: arrival, I1
func TestWaiterStandsStillAfterItsRename(t *testing.T) {
	for _, a := range arrivals() {
		t.Run(a.name, func(t *testing.T) { synctest.Test(t, a.play) })
	}
}

func (a arrival) play(t *testing.T) {
	base, faulty, src := contested(t, scene{})
	holder := contendAndTry(t, src, sweptName, longClaim())
	waiter := contend(t, src, sweptName, source.Claim{TTL: arrivalTTL, Heartbeat: a.heartbeat})
	refuse(t, waiter)
	time.Sleep(time.Hour)
	ageStaged(t, base)
	release(t, holder)

	b := newLateBreaker(t, base)
	before := placing(base, faultfs.Before, times(1, func(faultfs.Op) error {
		if a.before {
			time.Sleep(time.Hour)
			ageStaged(t, base)
		}
		return nil
	}))
	faulty.Inject(faultfs.Chain(before, placing(base, faultfs.After, times(1, func(faultfs.Op) error {
		b.comeToTheLastStep(t)
		return a.answer
	}))))
	lease := tryUntil(t, waiter)
	b.finish(t)
	require.NoError(t, lease.Renew(t.Context()), "it was broken while its owner came to believe in it")
	require.Equal(t, lease.Record().Token, tokenOnDisk(t, base))
	release(t, lease)
	closed(t, waiter)
	requireTidy(t, base)
}

// tryUntil acquires a lock that becomes free.
func tryUntil(t *testing.T, c source.Contender) source.Lease {
	t.Helper()
	for end := time.Now().Add(watchdog); time.Now().Before(end); {
		lease, err := c.Try(t.Context())
		if err == nil {
			t.Cleanup(func() { _ = lease.Close() })
			return lease
		}
		require.ErrorIs(t, err, source.ErrHeld)
		seen, err := c.Look(t.Context())
		require.NoError(t, err)
		time.Sleep(min(seen.Next, arrivalBeat))
	}
	require.FailNow(t, "it is never free")
	return nil
}

// lateBreaker is a breaker on another host that stops right before it removes the lock file.
type lateBreaker struct {
	observer   source.Observer
	last, land chan struct{}
	done       chan error
}

func newLateBreaker(t *testing.T, base string) *lateBreaker {
	b := &lateBreaker{last: make(chan struct{}), land: make(chan struct{}), done: make(chan error, 1)}
	faulty := sharedFS()
	b.observer = observe(t, open(t, fslock.Options{Base: base, FS: faulty, Self: elsewhere(t)}), sweptName, source.StalePolicy{})
	faulty.Inject(at("rename", faultfs.Before, lockedPath(base), func(faultfs.Op) error {
		close(b.last)
		<-b.land
		return nil
	}))
	return b
}

func (b *lateBreaker) comeToTheLastStep(t *testing.T) {
	t.Helper()
	lookUntil(t, b.observer, source.StateDead, nil)
	go func() { b.done <- b.observer.Break(t.Context()) }()
	<-b.last
}

func (b *lateBreaker) finish(t *testing.T) {
	t.Helper()
	close(b.land)
	if err := <-b.done; !errors.Is(err, source.ErrHeld) {
		require.NoError(t, err)
	}
}

// A lock that came too late, and cannot be released, is neither acquired nor held by another process.
// Rule: arrival, I4
func TestLateLockCannotBeGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base, faulty, src := contested(t, scene{})
		waiter := contend(t, src, sweptName, source.Claim{TTL: arrivalTTL, Heartbeat: arrivalBeat})
		late := placing(base, faultfs.After, func(faultfs.Op) error {
			time.Sleep(arrivalTTL)
			return nil
		})
		faulty.Inject(faultfs.Chain(late, removing(base, faultfs.Before, answering(syscall.EIO))))
		_, err := waiter.Try(t.Context())
		require.ErrorIs(t, err, source.ErrUnsure)
		require.ErrorIs(t, err, syscall.EIO)

		faulty.Inject(nil)
		o := observe(t, open(t, fslock.Options{Base: base, FS: sharedFS(), Self: elsewhere(t)}), sweptName, source.StalePolicy{})
		lookUntil(t, o, source.StateDead, nil)
		require.NoError(t, o.Break(t.Context()))
		requireTidy(t, base)
	})
}

// If each attempt comes too late, the error says what to do about it.
// Rule: arrival
func TestEachLockComesTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base, faulty, src := contested(t, scene{})
		attempts := 0
		faulty.Inject(placing(base, faultfs.After, func(faultfs.Op) error {
			attempts++
			time.Sleep(arrivalTTL)
			return nil
		}))
		_, err := contend(t, src, sweptName, source.Claim{TTL: arrivalTTL, Heartbeat: arrivalBeat}).Try(t.Context())
		require.ErrorContains(t, err, "longer TTL")
		require.NotErrorIs(t, err, source.ErrHeld)
		require.LessOrEqual(t, attempts, 3, "nobody waits for as many ttls to be told")
		faulty.Inject(nil)
		requireTidy(t, base)
	})
}
