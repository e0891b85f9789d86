package multilock_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

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
