package multilock_test

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/process"
)

func TestErrorTexts(t *testing.T) {
	host := process.Identity{Host: "node7", PID: 4711}
	held := func(h multilock.Holder) error {
		return &multilock.HeldError{Name: "nightly", Sighting: multilock.Sighting{
			Record: multilock.Record{Claim: multilock.Claim{Holder: h}}, Why: "it lives",
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
		{&multilock.LostError{Name: "nightly", Silence: 1500*time.Millisecond + 400*time.Microsecond}, multilock.ErrLost, `lock "nightly" is lost: no renewal was confirmed for 1.5s`},
		{&multilock.LostError{Name: "nightly", Err: syscall.ESTALE}, multilock.ErrLost, `lock "nightly" is lost: stale file handle`},
		{&multilock.LostError{Name: "nightly", Err: syscall.ESTALE}, syscall.ESTALE, `stale`},
		{&multilock.OpError{Source: "fslock", Op: "rename", Name: "nightly", Err: syscall.EIO}, syscall.EIO, `fslock: lock "nightly": rename: input/output error`},
		{&multilock.OpError{Source: "fslock", Op: "stage", Err: syscall.ENOSPC, Hint: "free some"}, syscall.ENOSPC, `fslock: stage: no space left on device (free some)`},
		{&multilock.InvalidError{What: "lock name", Got: "a/b", Why: "no slash"}, multilock.ErrInvalid, `lock name "a/b": no slash`},
		{&multilock.InvalidError{What: "base", Got: "x", Why: "no", Err: syscall.ENOTDIR}, syscall.ENOTDIR, `base "x": no`},
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
		&multilock.HeldError{}: multilock.ErrHeld, &multilock.LostError{}: multilock.ErrLost, &multilock.InvalidError{}: multilock.ErrInvalid,
	} {
		for _, other := range all {
			require.Equal(t, is == other, errors.Is(err, other), "%T is %v", err, other) //nolint:errorlint // which of them it is
		}
	}
}

func TestTextWithoutAHint(t *testing.T) {
	require.Equal(t, "fslock: stage: no space left on device", (&multilock.OpError{Source: "fslock", Op: "stage", Err: syscall.ENOSPC}).Error())
}

func TestStatesHaveNames(t *testing.T) {
	for state, want := range map[multilock.State]string{
		multilock.Free: "free", multilock.Held: "held", multilock.Suspect: "suspect", multilock.Dead: "dead", 9: "State(9)",
	} {
		text, err := state.MarshalText()
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
}

// promising is a source that says something about one trait.
type promising struct{ *fake }

func (promising) Promises() []multilock.Promise {
	return []multilock.Promise{{Trait: multilock.OneClock, Kept: true, Why: "it has one"}}
}

func TestPromiseOf(t *testing.T) {
	promise, ok := multilock.PromiseOf(promising{newFake()}, multilock.OneClock)
	require.True(t, ok)
	require.Equal(t, "it has one", promise.Why)
	_, ok = multilock.PromiseOf(promising{newFake()}, multilock.Results)
	require.False(t, ok)
	_, ok = multilock.PromiseOf(newFake(), multilock.OneClock)
	require.False(t, ok)
}

func TestTextsAtTheirLimits(t *testing.T) {
	require.Equal(t, "abc", multilock.Shorten("abc", 3))
	require.Equal(t, "ab...", multilock.Shorten("abc", 2))
	require.Equal(t, "a...", multilock.Shorten("aä", 2))
	require.Equal(t, "node7 (detached)", multilock.Holder{Identity: process.Identity{Host: "node7"}}.String())
	require.Equal(t, "node7 pid 1", multilock.Holder{Identity: process.Identity{Host: "node7", PID: 1}}.String())
}

func TestOnlySomeTroublePasses(t *testing.T) {
	passing, lasting := &multilock.OpError{Err: syscall.EROFS, Passing: true}, &multilock.OpError{Err: syscall.EROFS}
	require.ErrorIs(t, passing, multilock.ErrPassing)
	require.NotErrorIs(t, passing, multilock.ErrHeld)
	require.NotErrorIs(t, lasting, multilock.ErrPassing)
	require.NotErrorIs(t, lasting, multilock.ErrHeld)
}
