//go:build unix

package console

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// 124 is for limits that the user has set. A server that does not answer in its own
// time is a failure.
func TestDeadlinesOfServersAreNoLimits(t *testing.T) {
	t.Parallel()
	slow := &source.OpError{Source: "x", Op: "ask", Err: fmt.Errorf("no answer: %w", context.DeadlineExceeded)}
	require.Equal(t, ExitTimeLimit, ExitCode(context.DeadlineExceeded))
	require.Equal(t, ExitFailure, ExitCode(slow))
	require.Equal(t, ExitUnsure, ExitCode(errors.Join(multilock.ErrUnsure, slow)))
	require.Equal(t, ExitTimeLimit, ExitCode(errors.Join(ErrWaitOver, slow)))
	require.Equal(t, ExitTimeLimit, ExitCode(&multilock.LostError{Name: "x", Err: multilock.ErrOver}), "that is how such a lock ends")
}
