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

// Bench is where an operation of a sweep is done once, with a fault at one of its requests.
type Bench struct {
	testing.TB
	// Name is the lock's, of which nothing has been used before.
	Name string
	// Struck is the source whose requests meet the fault, Other one of another host, which
	// meets none.
	Struck, Other source.Source
	// Claim is that of holders and contenders, Dead that of a holder who can be broken soon.
	Claim, Dead source.Claim
	// Strike has the fault come, Calm ends that and says whether it came.
	Strike func()
	Calm   func() (struck bool)
	// Land has all be carried out that is still under way.
	Land func()
	// Early says that Land is called while the operation's own holder has the lock; otherwise
	// the next one has it then.
	Early bool
	// Token is whose the lock is in the place itself, "" if nobody's. Taken requires that
	// whatever else shows it is there when it was acquired, Gone that nothing is left of it
	// when nobody has it.
	Token func() string
	Taken func(token string)
	Gone  func()
	// Startles says that what comes late may have the holder give up a lock that it still has.
	Startles bool
	// Hidden says that nobody is to notice such a fault, Crashed that it ends the process.
	Hidden, Crashed bool

	lease    source.Lease
	dead     source.Lease
	observer source.Observer
	number   uint64
	before   string          // whose the lock was before the operation
	revision string          // of the results then
	ctx      context.Context //nolint:containedctx // the scene's own
}

// Operation is a part of a source's protocol that is swept.
type Operation struct {
	Name    string
	Prepare func(*Bench)
	Do      func(*Bench) error
	// Check requires that what was said is true, and that it can be done again after an error.
	Check func(*Bench, error)
}

// Operations are those with these names.
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

// Sweep does an operation on one bench after the other: the n-th is to have the fault at
// the n-th request. It ends when there is no such request, and says how many there were.
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

// on says whether the fault has come.
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

// end leaves what is open, also after a failure.
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

// land has all be carried out that is under way, at one of the two moments for that.
func (b *Bench) land(early bool) {
	if b.Early == early {
		b.Land()
	}
}

// requireNext: whatever happened before, somebody else gets the lock, and keeps it. Who
// has ended and would be believed for long is broken.
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

// lock takes a free lock that nothing renews. On a busy machine a short TTL may be over before
// the lock can be used; then it is taken again.
func (b *Bench) lock(src source.Source, claim source.Claim) source.Lease {
	b.Helper()
	const tries = 20
	for n := 1; ; n++ {
		contender, err := src.Contend(b.ctx, b.Name, claim, source.StalePolicy{})
		require.NoError(b, err)
		lease, err := contender.Try(b.ctx)
		require.NoError(b, contender.Close())
		if err != nil && n < tries && strings.Contains(err.Error(), "it comes too late") {
			continue
		}
		require.NoError(b, err)
		return lease
	}
}

func (b *Bench) hold() { b.lease = b.lock(b.Struck, b.Claim) }

// use makes the first use of the lock, and then changes it from elsewhere: what was
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

// holdInSilence is a holder who has not renewed for most of its TTL, by its own clock.
func (b *Bench) holdInSilence() {
	b.hold()
	time.Sleep(b.Claim.TTL * 6 / 10)
}

func (b *Bench) holdElsewhere() { b.dead = b.lock(b.Other, longClaim()) }

func longClaim() source.Claim { return source.Claim{TTL: time.Hour, Heartbeat: time.Minute} }

// leaveDead leaves the lock of somebody else, and looks until he is known to be dead.
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

// compete is what the core does to get a lock that nobody living holds.
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

// passBy watches who is in the way, and breaks the dead.
func (b *Bench) passBy(who source.Observer) error {
	seen, err := who.Look(b.ctx)
	switch {
	case err != nil || seen.State == source.StateFree:
		return err
	case seen.State == source.StateDead: // what was sent before may be carried out just now, and looks like a sign of life
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

// breakDead looks at him again, and breaks him.
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

// checkAcquired: acquired means ours; an error means that it is not and will not be, unless
// it says that it cannot tell.
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

// checkHeld: the lock is still held, so nobody may have said that it is lost.
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

// checkReleased: released means that it is gone; after an error it can be tried again.
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

// checkBroken: nothing but an error leaves the lock, and then it can be broken still. The
// one who had it does not have it any more.
func (b *Bench) checkBroken(err error) {
	b.Helper()
	require.NotErrorIs(b, err, source.ErrFree)
	if err != nil {
		b.forceElsewhere()
	}
	require.Empty(b, b.Token())
	require.ErrorIs(b, b.dead.Renew(b.ctx), source.ErrLost)
}
