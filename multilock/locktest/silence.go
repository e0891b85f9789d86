package locktest

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/source"
)

// silences is for how many TTLs the tests watch what must not die.
const silences = 3

// testSilenceWithinMaxAge has two watch one silent holder, with more and with
// less patience.
func testSilenceWithinMaxAge(p *place) {
	p.lease(p.open(), "nightly", p.claim())
	patient := p.observe(p.open(), "nightly", source.Patience{MaxAge: time.Hour})
	for start := boottime.Now(); start.Elapsed() < silences*p.ttl; p.pause(p.ttl / 10) {
		seen, err := patient.Look(p.ctx)
		require.NoError(p, err)
		require.Equal(p, source.StateHeld, seen.State)
	}
	p.watchUntilDead(p.observe(p.open(), "nightly", source.Patience{MaxAge: p.ttl / 2}))
	require.ErrorIs(p, patient.Break(p.ctx), source.ErrHeld)
}

// testRenewedLockIsNeverDead renews before every look. Whatever time passes in
// between, one sign of life is there to be seen.
func testRenewedLockIsNeverDead(p *place) {
	lease := p.lease(p.open(), "nightly", p.claim())
	rival, err := p.open().Contend(p.ctx, "nightly", p.claim(), source.Patience{})
	require.NoError(p, err)
	for start := boottime.Now(); start.Elapsed() < silences*p.ttl; p.pause(p.ttl / 10) {
		require.NoError(p, lease.Renew(p.ctx))
		seen, err := rival.Look(p.ctx)
		require.NoError(p, err)
		require.Contains(p, []source.State{source.StateHeld, source.StateSuspect}, seen.State, seen.Why)
		require.ErrorIs(p, rival.Break(p.ctx), source.ErrHeld)
		_, err = rival.Try(p.ctx)
		require.ErrorIs(p, err, source.ErrHeld)
	}
	require.NoError(p, rival.Close())
	require.NoError(p, lease.Release(p.ctx))
}

// testKeptLockOutlastsItsTTL lets somebody wait for a lock that is kept. On a
// machine that stands still for a TTL the holder loses it, and has to know that;
// then the test begins anew.
func testKeptLockOutlastsItsTTL(p *place) {
	const attempts = 10
	for range attempts {
		lock := p.wait(p.open(), "nightly", multilock.Options{TTL: p.ttl})
		ctx, cancel := context.WithTimeout(p.ctx, silences*p.ttl)
		successor, err := multilock.Acquire(ctx, p.open(), "nightly", multilock.Options{})
		cancel()
		if err == nil {
			require.Zero(p, lock.Remaining(), "two believe in the lock")
			p.release(successor)
		}
		if lock.Release(p.ctx) == nil {
			require.ErrorIs(p, err, context.DeadlineExceeded)
			require.ErrorAs(p, err, new(*multilock.HeldError))
			return
		}
	}
	require.Fail(p, "the lock was lost every time")
}

func testDetached(p *place) {
	a, b := p.open(), p.open()
	long := p.try(a, "nightly", multilock.Options{TTL: time.Hour, Detached: true})
	require.Zero(p, long.Record().Heartbeat)
	p.requireHeld(b, "nightly", long.Record().Token)
	p.release(long)
	p.requireFree(b, "nightly")

	left := p.try(a, "nightly", multilock.Options{TTL: time.Hour, Detached: true})
	require.NoError(p, left.Detach())
	require.ErrorIs(p, left.Release(p.ctx), source.ErrReleased)
	p.requireHeld(b, "nightly", left.Record().Token)
	p.forced(b, "nightly", left.Record().Token)

	short := p.try(a, "nightly", multilock.Options{TTL: p.ttl, Detached: true})
	require.NoError(p, short.Detach())
	p.release(p.wait(b, "nightly", multilock.Options{}))
}
