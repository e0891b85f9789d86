package multilock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// someone is another process of this host.
var someone = process.Identity{Host: "h", PID: 7}

func TestOptionsAreValidated(t *testing.T) {
	tests := []struct {
		opt  multilock.Options
		want string
	}{
		{multilock.Options{TTL: -time.Second}, `ttl "-1s": must be at least 100ms`},
		{multilock.Options{TTL: source.MinTTL - 1}, `ttl "99.999999ms": must be at least 100ms`},
		{multilock.Options{TTL: source.MaxTTL + 1}, "must be at most 87600h0m0s"},
		{multilock.Options{Poll: -1}, `poll "-1ns": must be positive`},
		{multilock.Options{Patience: multilock.Patience{MaxAge: -time.Hour}}, `max-age "-1h0m0s": must be positive`},
		{multilock.Options{Owner: someone, Job: true}, `option "owner": a lock that guards a job`},
		{multilock.Options{Owner: someone, Detached: true}, `option "owner": a lock that guards a job, or that nobody renews`},
		{multilock.Options{Owner: process.Identity{PID: 7}}, `option "owner": names no process`},
		{multilock.Options{Owner: process.Identity{Host: "h"}}, `option "owner": names no process`},
		{multilock.Options{Detached: true, Job: true}, `option "detached": a job cannot run under a lock that nobody renews`},
	}
	for _, tt := range tests {
		t.Run(tt.want, func(t *testing.T) {
			f := newFake()
			_, err := multilock.TryAcquire(t.Context(), f, "nightly", tt.opt)
			require.ErrorIs(t, err, multilock.ErrInvalid)
			require.ErrorContains(t, err, tt.want)
			_, err = multilock.Acquire(t.Context(), f, "nightly", tt.opt)
			require.ErrorIs(t, err, multilock.ErrInvalid)
			require.Empty(t, f.steps(), "nothing was asked of the source")
		})
	}
}

// The lock names the process that it is held for; without one the source says who we are.
func TestOwnerIsTheHolder(t *testing.T) {
	for _, owner := range []process.Identity{{}, someone} {
		bubble(t, func(t *testing.T, f *fake) {
			lock := acquire(t, f, multilock.Options{Owner: owner})
			require.Equal(t, owner, f.claim.Holder.Identity)
			require.NoError(t, lock.Release(t.Context()))
		})
	}
}

func TestOptionsAtTheirLimits(t *testing.T) {
	for _, ttl := range []time.Duration{source.MinTTL, source.MaxTTL} {
		bubble(t, func(t *testing.T, f *fake) {
			lock := acquire(t, f, multilock.Options{TTL: ttl})
			require.Equal(t, ttl, f.claim.TTL)
			require.LessOrEqual(t, f.claim.Heartbeat, beat)
			require.NoError(t, lock.Release(t.Context()))
		})
	}
}
