package multilock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
)

func TestOptionsAreValidated(t *testing.T) {
	tests := []struct {
		opt  multilock.Options
		want string
	}{
		{multilock.Options{TTL: -time.Second}, `ttl "-1s": must be at least 100ms`},
		{multilock.Options{TTL: multilock.MinTTL - 1}, `ttl "99.999999ms": must be at least 100ms`},
		{multilock.Options{TTL: multilock.MaxTTL + 1}, "must be at most 87600h0m0s"},
		{multilock.Options{Poll: -1}, `poll "-1ns": must be positive`},
		{multilock.Options{Patience: multilock.Patience{MaxAge: -time.Hour}}, `max-age "-1h0m0s": must be positive`},
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

func TestOptionsAtTheirLimits(t *testing.T) {
	for _, ttl := range []time.Duration{multilock.MinTTL, multilock.MaxTTL} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			lock := acquire(t, f, multilock.Options{TTL: ttl})
			require.Equal(t, ttl, f.claim.TTL)
			require.LessOrEqual(t, f.claim.Heartbeat, beat)
			require.NoError(t, lock.Release(t.Context()))
		})
	}
}

func TestClaimNamesTheProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		lock := acquire(t, f, multilock.Options{})
		require.NotEmpty(t, f.claim.Holder.Command)
		require.NoError(t, lock.Release(t.Context()))
	})
}
