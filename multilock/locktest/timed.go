package locktest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// timedTests are for a source whose locks are released by time alone. They test that what it cannot do
// fails.
func timedTests() []timedTest {
	return []timedTest{
		{"HeldNamesTheHolder", lasting, testHeldNamesTheHolder},
		{"ContenderLeavesNothing", lasting, testContenderLeavesNothing},
		{"RefusedNames", lasting, testRefusedNames},
		{"JobMark", lasting, testJobMark},
		{"TimedAcquisition", lasting, testTimedAcquisition},
		{"TimedOneOfManyWins", lasting, func(p *place) { p.oneOfMany() }},
		{"TimedReleaseFreesNothing", lasting, testTimedReleaseFreesNothing},
		{"TimedLockCannotBeBroken", lasting, testTimedLockCannotBeBroken},
		{"TimedOddNames", lasting, func(p *place) { p.holdOdd(p.open()) }},
		{"TimedNumbers", lasting, func(p *place) {
			if p.fixture.Fences {
				lock := p.try(p.open(), "nightly", multilock.Options{})
				p.distinct(lock, p.growing(lock, 0))
			}
		}},
		{"TimedEnd", brief, testTimedEnd},
		{"TimedRenewalProlongsNothing", brief, testTimedRenewalProlongsNothing},
		{"TimedSuccessor", brief, testTimedSuccessor},
		{"TimedExclusion", brief, testTimedExclusion},
		{"TimedFreeAgain", brief, testTimedFreeAgain},
		{"TimedFences", brief, testTimedFences},
	}
}

type timedTest struct {
	name string
	need func(Fixture) time.Duration // the period
	run  func(*place)
}

// lasting is longer than any test.
func lasting(Fixture) time.Duration { return time.Hour }

// brief is for tests that wait until the period is over.
func brief(f Fixture) time.Duration { return f.ttl() }

func runTimed(t *testing.T, f Fixture) {
	for _, test := range timedTests() {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			period := test.need(f)
			here := f
			here.Place = func(t testing.TB) func() source.Source { return f.Timed(t, period) }
			test.run(newPlace(t, here))
		})
	}
}

func testTimedAcquisition(p *place) {
	a, b := p.open(), p.open()
	p.requireFree(b, "nightly")
	lock := p.try(a, "nightly", multilock.Options{TTL: time.Minute})
	require.NotEmpty(p, lock.Record().Token)
	require.Greater(p, lock.Remaining(), time.Minute, "the source's period counts, and not the TTL")
	require.NoError(p, lock.Verify(p.ctx))
	p.requireHeld(b, "nightly", lock.Record().Token)
	p.requireHeld(a, "nightly", lock.Record().Token)
	p.requireFree(b, "weekly")
	p.try(b, "weekly", multilock.Options{})
	p.requireNames(a, "nightly", "weekly")
}

// testTimedReleaseFreesNothing: if a holder releases the lock early, the lock stays held for the rest of
// the period.
func testTimedReleaseFreesNothing(p *place) {
	src := p.open()
	lock := p.try(src, "nightly", multilock.Options{})
	p.release(lock)
	require.ErrorIs(p, context.Cause(lock.Context()), source.ErrReleased)
	require.ErrorIs(p, lock.Release(p.ctx), source.ErrReleased)
	require.ErrorIs(p, lock.Verify(p.ctx), source.ErrReleased)
	p.requireHeld(src, "nightly", lock.Record().Token)
	p.requireHeld(p.open(), "nightly", lock.Record().Token)

	left := p.try(src, "weekly", multilock.Detached{})
	require.NoError(p, left.Detach())
	p.requireHeld(src, "weekly", left.Record().Token)
}

func testTimedLockCannotBeBroken(p *place) {
	a, b := p.open(), p.open()
	lock := p.try(a, "nightly", multilock.Options{})
	_, err := multilock.Break(p.ctx, b, "nightly", multilock.BreakOptions{})
	require.ErrorAs(p, err, new(*multilock.HeldError))
	_, err = multilock.Break(p.ctx, b, "nightly", multilock.BreakOptions{Token: "another", Alive: true})
	require.ErrorAs(p, err, new(*multilock.HeldError))
	_, err = multilock.Break(p.ctx, b, "nightly", multilock.BreakOptions{Alive: true})
	require.ErrorIs(p, err, source.ErrUnsupported)
	_, err = multilock.Break(p.ctx, b, "nobody", multilock.BreakOptions{Alive: true})
	require.ErrorIs(p, err, source.ErrFree)

	observer := p.observe(b, "nightly", source.StalePolicy{})
	require.ErrorIs(p, observer.Break(p.ctx), source.ErrHeld)
	require.NoError(p, lock.Verify(p.ctx))
	p.requireHeld(b, "nightly", lock.Record().Token)
	for _, trait := range []source.Trait{source.TraitBreakByEvidence, source.TraitBreakByForce, source.TraitPromptRelease} {
		guarantee, ok := source.GuaranteeOf(b, trait)
		require.True(p, ok && !guarantee.Kept, "what it cannot do, it has to say: %s", trait)
	}
}

// testTimedEnd holds a lock for longer than its period.
func testTimedEnd(p *place) {
	lock := p.wait(p.open(), "nightly", multilock.Options{})
	select {
	case <-lock.Context().Done():
	case <-p.ctx.Done():
		require.Fail(p, "the lock's context never ended")
	}
	var lost *source.LostError
	require.ErrorAs(p, context.Cause(lock.Context()), &lost)
	require.ErrorIs(p, lost, source.ErrOver)
	require.Zero(p, lock.Remaining())
	require.ErrorIs(p, lock.Verify(p.ctx), source.ErrLost)
	_, err := lock.Fence(p.ctx)
	require.ErrorIs(p, err, source.ErrLost)
	require.ErrorIs(p, lock.Release(p.ctx), source.ErrOver)
	require.ErrorIs(p, lock.Release(p.ctx), source.ErrReleased)
}

func testTimedRenewalProlongsNothing(p *place) {
	lease := p.timed(p.open(), "nightly")
	ends := lease.Ends()
	var err error
	for err == nil {
		over := ends.Elapsed() >= 0
		if err = lease.Renew(p.ctx); over {
			require.ErrorIs(p, err, source.ErrLost)
		}
		p.pause(time.Millisecond)
	}
	require.ErrorIs(p, err, source.ErrOver)
	require.GreaterOrEqual(p, ends.Elapsed(), time.Duration(0), "it was over before its time")
	require.ErrorIs(p, lease.Release(p.ctx), source.ErrLost)
	require.ErrorIs(p, lease.Renew(p.ctx), source.ErrReleased)
}

// timed acquires a lock that is not renewed. If the machine stalled during the acquisition, the lock is
// over at once, and is acquired again.
func (p *place) timed(src source.Source, name string) source.Timed {
	p.Helper()
	contender, err := src.Contend(p.ctx, name, p.claim(), source.StalePolicy{})
	require.NoError(p, err)
	lease, err := contender.Try(p.ctx)
	for ; errors.Is(err, source.ErrHeld); lease, err = contender.Try(p.ctx) {
		p.pause(p.ttl / 20)
	}
	require.NoError(p, err)
	require.NoError(p, contender.Close())
	timed, ok := lease.(source.Timed)
	require.True(p, ok, "a lease that ends by time says when")
	return timed
}

// testTimedSuccessor acquires the lock after a holder that did nothing, and after one that released it.
func testTimedSuccessor(p *place) {
	silent, released := p.timed(p.open(), "nightly"), p.timed(p.open(), "weekly")
	if err := released.Release(p.ctx); err != nil {
		require.ErrorIs(p, err, source.ErrOver) // the machine stalled for that long
	}
	p.wait(p.open(), "nightly", multilock.Options{})
	require.Positive(p, silent.Ends().Elapsed(), "two had the lock at the same time")
	p.wait(p.open(), "weekly", multilock.Options{})
	require.Positive(p, released.Ends().Elapsed(), "it was given to the next one before its time")
}

// testTimedExclusion has rivals acquire the lock one after the other, and checks their events. They do no
// work, because on a machine that stalls it would come too late.
func testTimedExclusion(p *place) {
	const rivals = 5
	a := newArena(p)
	results := make(chan error, rivals)
	for i := range rivals {
		r := rival{arena: a, src: a.open(), opt: multilock.Options{Poll: p.ttl / 20}, recorder: NewRecorder(a, string(rune('A'+i)))}
		go func() { results <- r.round(func() error { return nil }) }()
	}
	for range rivals {
		require.NoError(p, <-results)
	}
	a.check()
}

// testTimedFreeAgain: an observer that watches for long enough sees that the lock is free.
func testTimedFreeAgain(p *place) {
	lease := p.timed(p.open(), "nightly")
	observer := p.observe(p.open(), "nightly", source.StalePolicy{})
	seen := source.Observation{State: source.StateHeld}
	for seen.State != source.StateFree {
		require.NotEqual(p, source.StateDead, seen.State)
		p.pause(seen.Next)
		var err error
		seen, err = observer.Look(p.ctx)
		require.NoError(p, err)
		require.NotEmpty(p, seen.Why)
	}
	require.Positive(p, lease.Ends().Elapsed())
}

func testTimedFences(p *place) {
	if !p.fixture.Fences {
		testFences(p)
		return
	}
	highest := uint64(0)
	for range 3 {
		lock := p.wait(p.open(), "nightly", multilock.Options{})
		number, err := lock.Fence(p.ctx)
		require.NoError(p, unlessOver(err))
		if err == nil {
			require.Greater(p, number, highest)
			highest = number
		}
		_ = lock.Release(p.ctx)
	}
}
