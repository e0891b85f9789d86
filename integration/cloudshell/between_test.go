package cloudshell_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/fakecloudshell"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// These tests interfere between a breaker's listing and its step, at each of its attempts.

// atSteps runs do just before each step of a breaker, until do returns false.
func atSteps(l *lab, do func() bool) {
	var over atomic.Bool
	l.server.Inject(func(c fakecloudshell.Call) fakecloudshell.Fault {
		if c.Method == fakecloudshell.AddService && strings.Contains(c.Body, "c=multilock+break") && !over.Load() && !do() {
			over.Store(true)
		}
		return fakecloudshell.Fault{}
	})
}

// lease acquires a lock that only the test renews.
func lease(t *testing.T, l *lab, claim source.Claim) source.Lease {
	t.Helper()
	c, err := l.open(t).Contend(t.Context(), "MUTEX", claim, multilock.StalePolicy{})
	require.NoError(t, err)
	lease, err := c.Try(t.Context())
	require.NoError(t, err)
	return lease
}

// hourly returns a claim that does not expire during a test.
func hourly() source.Claim { return source.Claim{TTL: time.Hour, Heartbeat: time.Minute} }

// A heartbeat does not change the holder: a release with the token and a forced break still succeed.
func TestHeartbeatsDoNotStopForce(t *testing.T) {
	for name, force := range map[string]func(token string) multilock.BreakOptions{
		"release with the token": func(token string) multilock.BreakOptions { return multilock.BreakOptions{Token: token, Alive: true} },
		"break --force":          func(string) multilock.BreakOptions { return multilock.BreakOptions{Alive: true} },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, serverOptions())
			holder := lease(t, l, hourly())
			signs := 0
			atSteps(l, func() bool {
				signs++
				require.NoError(t, holder.Renew(context.Background()))
				return signs < 8
			})
			_, err := multilock.Break(t.Context(), l.open(t), "MUTEX", force(holder.Record().Token))
			require.NoError(t, err)
			require.Equal(t, 8, signs)
			require.Len(t, l.aliases(), 1, "only the register is left")
			require.ErrorIs(t, holder.Renew(t.Context()), multilock.ErrLost)
			release(t, try(t, l.open(t), "MUTEX", multilock.Options{}))
		})
	}
}

// A breaker gives up when its context ends, even if heartbeats arrive faster than it can break the
// lock.
func TestForceEndsWithItsContext(t *testing.T) {
	l := newLab(t, serverOptions())
	holder := lease(t, l, hourly())
	ctx, cancel := context.WithCancel(t.Context())
	signs := 0
	atSteps(l, func() bool {
		if signs++; signs == 20 {
			cancel()
		}
		require.NoError(t, holder.Renew(context.Background()))
		return true
	})
	_, err := multilock.Break(ctx, l.open(t), "MUTEX", multilock.BreakOptions{Token: holder.Record().Token, Alive: true})
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, holder.Renew(t.Context()))
	require.NoError(t, holder.Release(t.Context()))
}

// A holder that was taken for dead and sends a heartbeat at the last moment keeps its lock.
func TestAHeartbeatStopsABreak(t *testing.T) {
	l := newLab(t, serverOptions())
	dead, err := process.Self()
	require.NoError(t, err)
	dead.PID, dead.Start = 1<<22+1, 1 // above any pid
	claim := hourly()
	claim.Holder.Identity = dead
	holder := lease(t, l, claim)
	signs := 0
	atSteps(l, func() bool {
		signs++
		require.NoError(t, holder.Renew(context.Background()))
		return true
	})
	_, err = multilock.Break(t.Context(), l.open(t), "MUTEX", multilock.BreakOptions{})
	require.ErrorIs(t, err, multilock.ErrHeld)
	require.Equal(t, 1, signs, "there is no second attempt")
	require.NoError(t, holder.Renew(t.Context()))
	require.NoError(t, holder.Release(t.Context()))
}

// A lock that has just passed to another holder is another lock: force does not follow it.
func TestForceDoesNotReachTheNextHolder(t *testing.T) {
	l := newLab(t, serverOptions())
	holder := lease(t, l, hourly())
	var next source.Lease
	atSteps(l, func() bool {
		require.NoError(t, holder.Renew(context.Background()))
		require.NoError(t, holder.Release(context.Background()))
		next = lease(t, l, hourly())
		return false
	})
	_, err := multilock.Break(t.Context(), l.open(t), "MUTEX", multilock.BreakOptions{Token: holder.Record().Token, Alive: true})
	require.NoError(t, err, "the lock that was meant is gone")
	require.NoError(t, next.Renew(t.Context()))
	require.NoError(t, next.Release(t.Context()))
}

// A heartbeat comes just before the first step, whose request or reply is lost: the breaker repeats the
// step.
func TestForceThroughLostRequests(t *testing.T) {
	for name, fault := range map[string]fakecloudshell.Fault{
		"answer lost": {Reply: fakecloudshell.Dropped}, "request lost": {Execute: fakecloudshell.Never, Reply: fakecloudshell.Dropped},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, serverOptions())
			holder := lease(t, l, hourly())
			steps := 0
			l.server.Inject(func(c fakecloudshell.Call) fakecloudshell.Fault {
				if c.Method != fakecloudshell.AddService || !strings.Contains(c.Body, "c=multilock+break") {
					return fakecloudshell.Fault{}
				}
				if steps++; steps > 1 {
					return fakecloudshell.Fault{}
				}
				require.NoError(t, holder.Renew(context.Background()))
				return fault
			})
			_, err := multilock.Break(t.Context(), l.open(t), "MUTEX", multilock.BreakOptions{Token: holder.Record().Token, Alive: true})
			require.NoError(t, err)
			require.Len(t, l.aliases(), 1)
			require.ErrorIs(t, holder.Renew(t.Context()), multilock.ErrLost)
		})
	}
}
