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

// What happens between a breaker's listing and its step, each time that it tries.

// atSteps does something just before each step of a breaker, until that says false.
func atSteps(l *lab, do func() bool) {
	var over atomic.Bool
	l.server.Inject(func(c fakecloudshell.Call) fakecloudshell.Fault {
		if c.Method == fakecloudshell.AddService && strings.Contains(c.Body, "c=multilock+break") && !over.Load() && !do() {
			over.Store(true)
		}
		return fakecloudshell.Fault{}
	})
}

// lease is a lock that is renewed by nobody else than the test.
func lease(t *testing.T, l *lab, claim source.Claim) source.Lease {
	t.Helper()
	c, err := l.open(t).Contend(t.Context(), "MUTEX", claim, multilock.StalePolicy{})
	require.NoError(t, err)
	lease, err := c.Try(t.Context())
	require.NoError(t, err)
	return lease
}

// hourly does not expire in a test.
func hourly() source.Claim { return source.Claim{TTL: time.Hour, Heartbeat: time.Minute} }

// A heartbeat does not make another holder: a release with the token and a forced break succeed.
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
			require.Len(t, l.aliases(), 1, "nothing is left but the register")
			require.ErrorIs(t, holder.Renew(t.Context()), multilock.ErrLost)
			release(t, try(t, l.open(t), "MUTEX", multilock.Options{}))
		})
	}
}

// A breaker gives up when its context ends, even if heartbeats come faster than it can break the lock.
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

// Who was taken for dead and shows life at the last moment keeps its lock.
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
	require.Equal(t, 1, signs, "it is not tried again")
	require.NoError(t, holder.Renew(t.Context()))
	require.NoError(t, holder.Release(t.Context()))
}

// A lock that passed on just then is another one: force does not follow it.
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
	require.NoError(t, err, "the one that was meant is gone")
	require.NoError(t, next.Renew(t.Context()))
	require.NoError(t, next.Release(t.Context()))
}

// A lost answer to the step, and a heartbeat instead of it: the step is made again.
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
