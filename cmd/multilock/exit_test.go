//go:build unix

package main

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
	require.Equal(t, exitTimeLimit, exitCode(context.DeadlineExceeded))
	require.Equal(t, exitFailure, exitCode(slow))
	require.Equal(t, exitUnsure, exitCode(errors.Join(multilock.ErrUnsure, slow)))
	require.Equal(t, exitTimeLimit, exitCode(errors.Join(errWaitOver, slow)))
	require.Equal(t, exitTimeLimit, exitCode(&multilock.LostError{Name: "x", Err: multilock.ErrOver}), "that is how such a lock ends")
}
