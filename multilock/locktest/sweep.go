package locktest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// Bench is where an operation of a sweep runs once, with a fault at one of its requests.
type Bench struct {
	testing.TB
	// Name is the lock's name, which was not used before.
	Name string
	// Struck is the source whose requests meet the fault, Other a source of another host, whose requests do
	// not.
	Struck, Other source.Source
	// Claim is for holders and contenders, Dead for a holder that can soon be broken.
	Claim, Dead source.Claim
	// Strike activates the fault; Calm deactivates it and reports whether it occurred.
	Strike func()
	Calm   func() (struck bool)
	// Land completes all requests that are still in progress.
	Land func()
	// Early means that Land is called while the operation's own holder has the lock; otherwise it is called
	// while the next holder has it.
	Early bool
	// Token reads the holder's token directly from the storage, "" if the lock is free. Taken requires that
	// everything else that belongs to a lock is there after an acquisition, Gone that nothing is left after
	// a release.
	Token func() string
	Taken func(token string)
	Gone  func()
	// Startles means that a late request may make the holder give up a lock that it still has.
	Startles bool
	// Hidden means that such a fault must go unnoticed, Crashed that it ends the process.
	Hidden, Crashed bool

	lease    source.Lease
	dead     source.Lease
	observer source.Observer
	number   uint64
	register source.Register // what the operation swaps: old is its value before, swaps its number of swaps after
	old      []byte
	swaps    uint64
	before   string          // the token before the operation
	revision string          // of the results before the operation
	ctx      context.Context //nolint:containedctx // the test's own
}

// Operation is a part of a source's protocol that is swept.
type Operation struct {
	Name    string
	Prepare func(*Bench)
	Do      func(*Bench) error
	// Check requires that the answer is true, and that the operation can be repeated after an error.
	Check func(*Bench, error)
}

// Operations returns the operations with these names.
func Operations(names ...string) (some []Operation) {
	all := append(lockOperations(), keptOperations()...)
	for _, name := range names {
		for _, op := range all {
			if op.Name == name {
				some = append(some, op)
			}
		}
	}
	if len(some) != len(names) {
		panic("an operation has another name")
	}
	return some
}

func lockOperations() []Operation {
	return []Operation{
		{"first acquire", func(*Bench) {}, (*Bench).compete, (*Bench).checkAcquired},
		{"acquire", (*Bench).use, (*Bench).compete, (*Bench).checkAcquired},
		{"be refused", (*Bench).holdElsewhere, (*Bench).beRefused, (*Bench).checkRefused},
		{"renew", (*Bench).hold, (*Bench).renew, (*Bench).checkHeld},
		{"mark the job", (*Bench).hold, (*Bench).mark, (*Bench).checkMarked},
		{"fence", (*Bench).holdWithNumber, (*Bench).fence, (*Bench).checkFenced},
		{"release", (*Bench).hold, (*Bench).release, (*Bench).checkReleased},
		{"late release", (*Bench).holdInSilence, (*Bench).release, (*Bench).checkReleased},
		{"break", (*Bench).leaveDead, (*Bench).breakDead, (*Bench).checkBroken},
		{"take over", (*Bench).leaveDead, (*Bench).compete, (*Bench).checkAcquired},
		{"force", (*Bench).leaveHeld, (*Bench).force, (*Bench).checkBroken},
	}
}

// longest is more requests than any operation has.
const longest = 100

// Sweep runs an operation on one bench after the other; on the n-th, the fault is at the n-th request. It
// ends when the operation has no n-th request, and returns the number of requests.
func (op Operation) Sweep(t testing.TB, bench func(n int) *Bench) (requests int) {
	t.Helper()
	for n := range longest {
		if b := bench(n); !op.on(b, n) {
			require.Positive(t, n, "the operation asks for nothing")
			return n
		}
	}
	require.Fail(t, "the sweep does not end")
	return 0
}

// on runs the operation once and reports whether the fault occurred.
func (op Operation) on(b *Bench, n int) bool {
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	b.ctx = ctx
	defer b.end()
	op.Prepare(b)
	b.before = b.Token()
	b.Strike()
	err := op.Do(b)
	struck := b.Calm()
	defer func() {
		if b.Failed() {
			b.Logf("%s, a fault at request %d: %v", op.Name, n, err)
		}
	}()
	if b.Hidden || !struck {
		require.NoError(b, err)
	}
	if !b.Crashed || !struck {
		op.Check(b, err)
	}
	b.requireNext()
	return struck
}

// end closes what is open, even after a failure.
func (b *Bench) end() {
	for _, each := range []source.Lease{b.lease, b.dead} {
		if each != nil {
			require.NoError(b, each.Close())
		}
	}
	if b.observer != nil {
		require.NoError(b, b.observer.Close())
	}
}

// land completes the requests in progress, at one of the two moments for that.
func (b *Bench) land(early bool) {
	if b.Early == early {
		b.Land()
	}
}

// requireNext: whatever happened before, another contender acquires the lock, and keeps it. A crashed
// holder with a long TTL is broken first.
func (b *Bench) requireNext() {
	b.Helper()
	b.land(true)
	seen, err := multilock.Inspect(b.ctx, b.Other, b.Name, source.StalePolicy{})
	require.NoError(b, err)
	if seen.State == source.StateHeld && seen.Record.TTL >= time.Minute {
		require.True(b, b.Crashed, "somebody has it: %+v", seen)
		b.forceElsewhere()
	}
	lock, err := multilock.Acquire(b.ctx, b.Other, b.Name, multilock.Options{TTL: time.Hour, Poll: 10 * time.Millisecond})
	require.NoError(b, err)
	b.land(false)
	require.Equal(b, lock.Record().Token, b.Token())
	require.NoError(b, lock.Verify(b.ctx))
	require.NoError(b, lock.Release(b.ctx))
	require.Empty(b, b.Token())
	b.Gone()
}

func (b *Bench) forceElsewhere() {
	b.Helper()
	_, err := multilock.Break(b.ctx, b.Other, b.Name, multilock.BreakOptions{Alive: true})
	if !errors.Is(err, source.ErrFree) {
		require.NoError(b, err)
	}
}

// lock acquires a free lock that is not renewed. On a busy machine a short TTL may be over before the lock
// can be used; then it tries again.
func (b *Bench) lock(src source.Source, claim source.Claim) source.Lease {
	b.Helper()
	const tries = 20
	for n := 1; ; n++ {
		contender, err := src.Contend(b.ctx, b.Name, claim, source.StalePolicy{})
		require.NoError(b, err)
		lease, err := contender.Try(b.ctx)
		require.NoError(b, contender.Close())
		if err != nil && n < tries && strings.Contains(err.Error(), "took longer than the TTL allows") {
			continue
		}
		require.NoError(b, err)
		return lease
	}
}

func (b *Bench) hold() { b.lease = b.lock(b.Struck, b.Claim) }

// use makes the first use of the lock, and then another one from elsewhere, so that what the source has
// learned is stale.
func (b *Bench) use() {
	for _, src := range []source.Source{b.Struck, b.Other} {
		lease := b.lock(src, b.Claim)
		require.NoError(b, lease.Release(b.ctx))
		require.NoError(b, lease.Close())
	}
}

func (b *Bench) holdWithNumber() {
	b.hold()
	require.NoError(b, b.fence())
}

// holdInSilence is a holder that has not renewed for most of its TTL, by its own clock.
func (b *Bench) holdInSilence() {
	b.hold()
	time.Sleep(b.Claim.TTL * 6 / 10)
}

func (b *Bench) holdElsewhere() { b.dead = b.lock(b.Other, longClaim()) }

func longClaim() source.Claim { return source.Claim{TTL: time.Hour, Heartbeat: time.Minute} }

// leaveDead leaves the lock of another process, and looks until that counts as dead.
func (b *Bench) leaveDead() {
	b.use()
	b.dead = b.lock(b.Other, b.Dead)
	b.look(source.StateDead)
}

func (b *Bench) leaveHeld() {
	b.use()
	b.holdElsewhere()
	b.look(source.StateHeld)
}

func (b *Bench) look(until source.State) {
	var err error
	b.observer, err = b.Struck.Observe(b.ctx, b.Name, source.StalePolicy{})
	require.NoError(b, err)
	for {
		seen, err := b.observer.Look(b.ctx)
		require.NoError(b, err)
		if seen.State == until {
			return
		}
		time.Sleep(seen.Next)
	}
}

// compete is what the core does to acquire a lock that no live process holds.
func (b *Bench) compete() error {
	c, err := b.Struck.Contend(b.ctx, b.Name, b.Claim, source.StalePolicy{})
	if err != nil {
		return err
	}
	for b.lease == nil && err == nil {
		if b.lease, err = c.Try(b.ctx); errors.Is(err, source.ErrHeld) {
			err = b.passBy(c)
		}
	}
	return errors.Join(err, c.Close())
}

// passBy inspects the holder, and breaks a dead one.
func (b *Bench) passBy(who source.Observer) error {
	seen, err := who.Look(b.ctx)
	switch {
	case err != nil || seen.State == source.StateFree:
		return err
	case seen.State == source.StateDead: // an earlier request may be carried out just now, and looks like a heartbeat
		if err := who.Break(b.ctx); !errors.Is(err, source.ErrHeld) {
			return err
		}
	}
	time.Sleep(min(seen.Next, b.Dead.TTL/20))
	return nil
}

func (b *Bench) beRefused() error {
	_, err := multilock.TryAcquire(b.ctx, b.Struck, b.Name, multilock.Options{TTL: time.Hour})
	require.Error(b, err)
	if errors.Is(err, source.ErrHeld) {
		return nil
	}
	return err
}

func (b *Bench) renew() error   { return b.lease.Renew(b.ctx) }
func (b *Bench) release() error { return b.lease.Release(b.ctx) }
func (b *Bench) force() error   { return b.observer.Force(b.ctx) }

func (b *Bench) fence() error {
	number, err := b.lease.Fence(b.ctx)
	if err == nil {
		require.Greater(b, number, b.number)
		b.number = number
	}
	return err
}

// breakDead looks at the dead holder again, and breaks its lock.
func (b *Bench) breakDead() error {
	for {
		seen, err := b.observer.Look(b.ctx)
		if err != nil || seen.State == source.StateFree {
			return err
		}
		if seen.State == source.StateDead {
			if err := b.observer.Break(b.ctx); !errors.Is(err, source.ErrHeld) {
				return err
			}
		}
		time.Sleep(min(seen.Next, b.Dead.TTL/20))
	}
}

// checkAcquired: success means that the lock is ours; an error means that it is not and will not be, unless
// the error is ErrUnsure.
func (b *Bench) checkAcquired(err error) {
	b.Helper()
	if b.lease != nil {
		require.NoError(b, err)
		b.Taken(b.lease.Record().Token)
		b.checkHeld(nil)
		return
	}
	require.Error(b, err)
	if errors.Is(err, source.ErrUnsure) {
		return
	}
	require.Contains(b, []string{"", b.before}, b.Token(), "an attempt that failed left a lock: %v", err)
	b.Land()
	require.Contains(b, []string{"", b.before}, b.Token(), "an attempt that failed takes the lock later: %v", err)
}

func (b *Bench) checkRefused(error) {
	b.Helper()
	b.Land()
	require.Equal(b, b.dead.Record().Token, b.Token())
	require.NoError(b, b.dead.Release(b.ctx))
}

// checkHeld: the lock is still held, so it must not have been reported lost.
func (b *Bench) checkHeld(err error) {
	b.Helper()
	require.NotErrorIs(b, err, source.ErrLost)
	token := b.lease.Record().Token
	require.Equal(b, token, b.Token())
	require.NoError(b, b.renew(), "it goes on after: %v", err)
	b.land(true)
	require.Equal(b, token, b.Token(), "what comes late changes nothing")
	if err := b.renew(); b.Startles && errors.Is(err, source.ErrLost) {
		b.forceElsewhere()
		return
	}
	require.NoError(b, b.renew())
	b.checkReleased(b.release())
}

func (b *Bench) checkFenced(err error) {
	b.Helper()
	require.NotErrorIs(b, err, source.ErrLost)
	require.NoError(b, b.fence(), "the next number is larger")
	b.checkHeld(nil)
}

// checkReleased: success means that the lock is gone; after an error the release can be repeated.
func (b *Bench) checkReleased(err error) {
	b.Helper()
	if err != nil {
		if again := b.release(); !errors.Is(err, source.ErrLost) {
			require.NoError(b, again, "it may be called again after: %v", err)
		}
	}
	require.Empty(b, b.Token())
	b.Gone()
	require.ErrorIs(b, b.release(), source.ErrReleased)
}

// checkBroken: only an error may leave the lock, which can then still be broken. Its former holder does not
// hold it any more.
func (b *Bench) checkBroken(err error) {
	b.Helper()
	require.NotErrorIs(b, err, source.ErrFree)
	if err != nil {
		b.forceElsewhere()
	}
	require.Empty(b, b.Token())
	require.ErrorIs(b, b.dead.Renew(b.ctx), source.ErrLost)
}
