package multilock_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// someone is another process of this host.
var someone = process.Identity{Host: "h", PID: 7}

// Rule: none (options)
func TestTermsAreValidated(t *testing.T) {
	calls := map[string]func(context.Context, multilock.Source, string, multilock.Terms) (*multilock.Lock, error){
		"Acquire": multilock.Acquire, "TryAcquire": multilock.TryAcquire, "TryOnce": multilock.TryOnce,
		"AcquireShared": multilock.AcquireShared, "TryAcquireShared": multilock.TryAcquireShared,
	}
	tests := []struct {
		terms multilock.Terms
		want  string
		fine  []string // calls to which the rule does not apply
	}{
		{multilock.Options{TTL: -time.Second}, `ttl "-1s": must be at least 100ms`, nil},
		{multilock.Options{TTL: source.MinTTL - 1}, `ttl "99.999999ms": must be at least 100ms`, nil},
		{multilock.Options{TTL: source.MaxTTL + 1}, "must be at most 87600h0m0s", nil},
		{multilock.Options{Poll: -1}, `poll "-1ns": must be positive`, nil},
		{multilock.Options{StalePolicy: multilock.StalePolicy{MaxAge: -time.Hour}}, `max-age "-1h0m0s": must be positive`, nil},
		{multilock.Options{Fair: true}, `option "fair": has no meaning for a call that does not wait`, []string{"Acquire", "AcquireShared"}},
		{multilock.OnBehalf{}, `owner ":0": names no process`, nil},
		{multilock.OnBehalf{Owner: process.Identity{PID: 7}}, `owner ":7": names no process`, nil},
		{multilock.OnBehalf{Owner: process.Identity{Host: "h"}}, `owner "h:0": names no process`, nil},
		{multilock.Recurring{Terms: multilock.ForJob{Options: multilock.Options{Poll: -1}}}, `poll "-1ns": must be positive`, nil},
		{multilock.Detached{Options: multilock.Options{TTL: -1}}, "must be at least 100ms", nil},
	}
	for _, tt := range tests {
		t.Run(tt.want, func(t *testing.T) {
			f := newFake()
			for call, acquire := range calls {
				if slices.Contains(tt.fine, call) {
					continue
				}
				_, err := acquire(t.Context(), f, "nightly.shared", tt.terms)
				require.ErrorIs(t, err, multilock.ErrInvalid, call)
				require.ErrorContains(t, err, tt.want, call)
			}
			require.Empty(t, f.steps(), "nothing was asked of the source")
		})
	}
}

// The terms determine what a lock records and how it is renewed.
// Rule: none (options)
func TestClaimOfTerms(t *testing.T) {
	opt := multilock.Options{TTL: ttl, User: "ada", Command: "sync"}
	for name, c := range map[string]struct {
		terms multilock.Terms
		want  source.Claim
	}{
		"Options":   {opt, source.Claim{Heartbeat: beat}},
		"Detached":  {multilock.Detached{Options: opt}, source.Claim{}},
		"ForJob":    {multilock.ForJob{Options: opt}, source.Claim{Heartbeat: beat, Job: true}},
		"Recurring": {multilock.Recurring{Terms: opt, Every: "1d"}, source.Claim{Heartbeat: beat, Holder: multilock.Holder{Every: "1d"}}},
		"both":      {multilock.Recurring{Terms: multilock.ForJob{Options: opt}, Every: "1d"}, source.Claim{Heartbeat: beat, Job: true, Holder: multilock.Holder{Every: "1d"}}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fake) {
				lock := acquire(t, f, c.terms)
				c.want.TTL, c.want.Holder.User, c.want.Holder.Command, c.want.KeyDigest = ttl, "ada", "sync", f.claim.KeyDigest
				require.Equal(t, c.want, f.claim)
				require.Equal(t, c.want.Job, f.claim.KeyDigest != (source.Claim{}).KeyDigest)
				require.NoError(t, lock.Release(t.Context()))
			})
		})
	}
}

// The lock names the process that it is held for; without one the source adds our own identity.
// Rule: record
func TestOwnerIsTheHolder(t *testing.T) {
	for owner, terms := range map[process.Identity]multilock.Terms{{}: multilock.Options{}, someone: multilock.OnBehalf{Owner: someone}} {
		bubble(t, func(t *testing.T, f *fake) {
			lock := acquire(t, f, terms)
			require.Equal(t, owner, f.claim.Holder.Identity)
			require.NoError(t, lock.Release(t.Context()))
		})
	}
}

// Rule: none (options)
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

// Rule: none (messages)
func TestErrorTexts(t *testing.T) {
	host := process.Identity{Host: "node7", PID: 4711}
	held := func(h multilock.Holder) error {
		return &multilock.HeldError{Name: "nightly", Observation: multilock.Observation{
			Record: source.Record{Claim: source.Claim{Holder: h}}, Why: "it lives",
		}}
	}
	tests := []struct {
		err  error
		is   error
		want string
	}{
		{held(multilock.Holder{}), multilock.ErrHeld, `lock "nightly" is held by an unknown process: it lives`},
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

// Rule: I4
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
