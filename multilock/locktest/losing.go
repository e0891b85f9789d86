package locktest

import (
	"errors"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

func testReleaseTwice(p *place) {
	src := p.open()
	lock := p.try(src, "nightly", multilock.Options{})
	p.release(lock)
	successor := p.try(p.open(), "nightly", multilock.Options{})
	require.ErrorIs(p, lock.Release(p.ctx), source.ErrReleased)
	require.ErrorIs(p, lock.Verify(p.ctx), source.ErrReleased)
	require.NoError(p, successor.Verify(p.ctx))

	lease := p.lease(src, "weekly", p.claim())
	require.NoError(p, lease.Release(p.ctx))
	require.ErrorIs(p, lease.Release(p.ctx), source.ErrReleased)
	require.Error(p, lease.Renew(p.ctx))
	p.requireFree(src, "weekly")
}

// forced breaks a lock whose holder is alive.
func (p *place) forced(src source.Source, name, token string) {
	p.Helper()
	seen, err := multilock.Break(p.ctx, src, name, multilock.BreakOptions{Alive: true})
	require.NoError(p, err)
	require.Equal(p, token, seen.Record.Token)
}

// testLeaseAfterABreak checks that no call of a holder that lost its lock affects its successor's.
func testLeaseAfterABreak(p *place) {
	a, b := p.open(), p.open()
	lease := p.lease(a, "nightly", p.claim())
	p.forced(b, "nightly", lease.Record().Token)
	successor := p.try(b, "nightly", multilock.Options{})

	err := lease.Renew(p.ctx)
	require.ErrorIs(p, err, source.ErrLost)
	var lost *source.LostError
	require.ErrorAs(p, err, &lost)
	require.Equal(p, "nightly", lost.Name)
	require.Error(p, lost.Err, "the source knows why")
	_, err = lease.Fence(p.ctx)
	require.Error(p, err)
	require.ErrorIs(p, lease.Release(p.ctx), source.ErrLost)
	require.Error(p, lease.Renew(p.ctx))
	require.NoError(p, lease.Close())
	require.NoError(p, successor.Verify(p.ctx))
	p.requireHeld(a, "nightly", successor.Record().Token)
	p.release(successor)

	alone := p.lease(a, "nightly", p.claim())
	p.forced(b, "nightly", alone.Record().Token)
	err = alone.Release(p.ctx)
	if !errors.Is(err, source.ErrUnsure) { // a source may not know whether its own request was repeated
		require.ErrorIs(p, err, source.ErrLost)
	}
	p.requireFree(b, "nightly")
}

func testCloseKeepsTheLock(p *place) {
	src := p.open()
	lease := p.lease(src, "nightly", source.Claim{TTL: time.Hour, Heartbeat: time.Minute})
	require.NoError(p, lease.Close())
	require.NoError(p, lease.Close())
	p.requireHeld(p.open(), "nightly", lease.Record().Token)
	p.forced(src, "nightly", lease.Record().Token)
}

func testBreakSparesTheLiving(p *place) {
	src := p.open()
	lock := p.try(src, "nightly", multilock.Options{})
	_, err := multilock.Break(p.ctx, p.open(), "nightly", multilock.BreakOptions{})
	require.ErrorAs(p, err, new(*multilock.HeldError))

	observer := p.observe(p.open(), "nightly", source.StalePolicy{})
	require.ErrorIs(p, observer.Break(p.ctx), source.ErrHeld, "nothing was judged yet")
	_, err = observer.Look(p.ctx)
	require.NoError(p, err)
	require.ErrorIs(p, observer.Break(p.ctx), source.ErrHeld)
	require.NoError(p, lock.Verify(p.ctx))
	p.release(lock)
}

func testBreakNeedsTheToken(p *place) {
	a, b := p.open(), p.open()
	first := p.lease(a, "nightly", p.claim())
	require.NoError(p, first.Release(p.ctx))
	lock := p.try(a, "nightly", multilock.Options{})
	for _, token := range []string{first.Record().Token, "another"} {
		_, err := multilock.Break(p.ctx, b, "nightly", multilock.BreakOptions{Token: token, Alive: true})
		require.ErrorAs(p, err, new(*multilock.HeldError))
		require.NoError(p, lock.Verify(p.ctx))
	}
	_, err := multilock.Break(p.ctx, b, "nightly", multilock.BreakOptions{Token: lock.Record().Token, Alive: true})
	require.NoError(p, err)
	require.ErrorIs(p, lock.Verify(p.ctx), source.ErrLost)
	_, err = multilock.Break(p.ctx, b, "nightly", multilock.BreakOptions{Token: lock.Record().Token, Alive: true})
	require.ErrorIs(p, err, source.ErrFree)
}

// testForceReachesOneWhoRenews breaks the lock of a holder that sends heartbeats as fast as it can. There
// is nearly always a heartbeat between the breaker's read and its write, and the breaker must not take that
// for another holder.
func testForceReachesOneWhoRenews(p *place) {
	const times = 4
	for range times {
		lease := p.lease(p.open(), "nightly", p.claim())
		lost := make(chan error, 1)
		go func() {
			for {
				if err := lease.Renew(p.ctx); err != nil {
					lost <- err
					return
				}
			}
		}()
		_, err := multilock.Break(p.ctx, p.open(), "nightly", multilock.BreakOptions{Token: lease.Record().Token, Alive: true})
		require.NoError(p, err)
		require.ErrorIs(p, <-lost, source.ErrLost)
	}
	p.requireFree(p.open(), "nightly")
}

func testFreeLockCannotBeBroken(p *place) {
	src := p.open()
	_, err := multilock.Break(p.ctx, src, "nightly", multilock.BreakOptions{})
	require.ErrorIs(p, err, source.ErrFree)
	p.release(p.try(src, "nightly", multilock.Options{}))
	_, err = multilock.Break(p.ctx, src, "nightly", multilock.BreakOptions{Alive: true})
	require.ErrorIs(p, err, source.ErrFree)
}

// testBreakReachesNoSuccessor judges one lock and breaks it after another one has replaced it, or after its
// holder has sent a heartbeat.
func testBreakReachesNoSuccessor(p *place) {
	a, b := p.open(), p.open()
	silent := p.lease(a, "nightly", p.claim())
	late := p.observe(p.open(), "nightly", source.StalePolicy{})
	later := p.observe(p.open(), "nightly", source.StalePolicy{})
	p.watchUntilDead(late)
	p.watchUntilDead(later)

	require.NoError(p, silent.Renew(p.ctx))
	require.ErrorIs(p, late.Break(p.ctx), source.ErrHeld)
	require.NoError(p, silent.Renew(p.ctx))

	p.forced(b, "nightly", silent.Record().Token)
	successor := p.try(b, "nightly", multilock.Options{})
	for _, err := range []error{later.Break(p.ctx), late.Force(p.ctx)} {
		if err != nil && !errors.Is(err, source.ErrHeld) {
			require.ErrorIs(p, err, source.ErrFree)
		}
	}
	require.NoError(p, successor.Verify(p.ctx))
	p.release(successor)
}

func (p *place) observe(src source.Source, name string, policy source.StalePolicy) source.Observer {
	p.Helper()
	observer, err := src.Observe(p.ctx, name, policy)
	require.NoError(p, err)
	p.Cleanup(func() { _ = observer.Close() })
	return observer
}

// watchUntilDead looks as often as the source asks for.
func (p *place) watchUntilDead(observer source.Observer) source.Observation {
	p.Helper()
	for {
		seen, err := observer.Look(p.ctx)
		require.NoError(p, err)
		require.NotEqual(p, source.StateFree, seen.State)
		if seen.State == source.StateDead {
			require.NotEmpty(p, seen.Why)
			return seen
		}
		p.pause(seen.Next)
	}
}

// pause lets as much time pass as a source asks for.
func (p *place) pause(d time.Duration) {
	p.Helper()
	select {
	case <-time.After(d):
	case <-p.ctx.Done():
		require.Fail(p, "the watchdog ended the test")
	}
}
