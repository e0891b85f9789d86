package multilock_test

import (
	"errors"
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

func TestErrorTexts(t *testing.T) {
	host := process.Identity{Host: "node7", PID: 4711}
	held := func(h multilock.Holder) error {
		return &multilock.HeldError{Name: "nightly", Sighting: multilock.Sighting{
			Record: source.Record{Claim: source.Claim{Holder: h}}, Why: "it lives",
		}}
	}
	tests := []struct {
		err  error
		is   error
		want string
	}{
		{held(multilock.Holder{}), multilock.ErrHeld, `lock "nightly" is held by somebody unknown: it lives`},
		{held(multilock.Holder{Identity: host}), multilock.ErrHeld, `lock "nightly" is held by node7 pid 4711: it lives`},
		{held(multilock.Holder{Identity: host, User: "ada"}), multilock.ErrHeld, `lock "nightly" is held by node7 pid 4711 by ada: it lives`},
		{held(multilock.Holder{Identity: host, User: "ada", Command: "rsync"}), multilock.ErrHeld, `lock "nightly" is held by node7 pid 4711 by ada: rsync: it lives`},
		{held(multilock.Holder{Identity: process.Identity{Host: "node7", PID: -1}}), multilock.ErrHeld, `lock "nightly" is held by node7 (detached): it lives`},
	}
	for _, tt := range tests {
		t.Run(tt.want, func(t *testing.T) {
			require.ErrorIs(t, tt.err, tt.is)
			require.Contains(t, tt.err.Error(), tt.want)
		})
	}
}

func TestErrorsAreNotMistakenForEachOther(t *testing.T) {
	all := []error{
		multilock.ErrHeld, multilock.ErrFree, multilock.ErrLost, multilock.ErrReleased,
		multilock.ErrUnsure, multilock.ErrUnsupported, multilock.ErrInvalid,
	}
	for i, one := range all {
		for j, other := range all {
			require.Equal(t, i == j, errors.Is(one, other))
		}
	}
	for err, is := range map[error]error{
		&multilock.HeldError{}: multilock.ErrHeld, &multilock.LostError{}: multilock.ErrLost, &source.InvalidError{}: multilock.ErrInvalid,
	} {
		for _, other := range all {
			require.Equal(t, is == other, errors.Is(err, other), "%T is %v", err, other) //nolint:errorlint // which of them it is
		}
	}
}
