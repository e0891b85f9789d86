package command

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/job"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
)

// The event of an ending selects its hook. A run that did nothing has no event.
func TestEventOfAnEnding(t *testing.T) {
	t.Parallel()
	held := &multilock.HeldError{Name: "x"}
	failed := &console.JobError{Result: job.Result{Code: 3}}
	lost := fmt.Errorf("renew: %w", multilock.ErrLost)
	for _, c := range []struct {
		name           string
		err            error
		skipped, begun bool
		want           hookEvent
	}{
		{"success", nil, false, true, eventSuccess},
		{"failed job", failed, false, true, eventFailure},
		{"lost lock", errors.Join(lost, failed), false, true, eventLoss},
		{"lock lost before an attempt", lost, false, false, eventNone},
		{"nothing to do", nil, true, false, eventNone},
		{"failed before", &console.CodedError{Code: console.ExitFailure, Text: "failed before"}, true, false, eventNone},
		{"held", held, false, false, eventNone},
		{"held, with a code of its own", &console.RefusedError{Code: console.ExitFailure, Err: held}, false, false, eventNone},
		{"held too often", &console.CodedError{Code: console.ExitStarved, Err: held}, false, false, eventFailure},
		{"unknown state", multilock.ErrUnsure, false, false, eventFailure},
		{"failure of a source", errors.New("no route to host"), false, false, eventFailure},
	} {
		var f facts
		if c.skipped {
			f.skipped = &lockgroup.Outcome{}
		}
		if c.begun {
			f.attempt.Lock = &multilock.Lock{}
		}
		require.Equal(t, c.want, f.ending(c.err, nil).event, c.name)
	}
}

// After the first attempt the command counts as started, even if the next attempt was not started.
func TestStarted(t *testing.T) {
	t.Parallel()
	first := lockgroup.Attempt{Lock: &multilock.Lock{}, First: true}
	second := lockgroup.Attempt{Lock: &multilock.Lock{}}
	require.False(t, facts{}.started(), "no attempt was made")
	require.False(t, facts{attempt: first}.started())
	require.True(t, facts{attempt: first, result: &job.Result{}}.started())
	require.True(t, facts{attempt: second}.started())
}
