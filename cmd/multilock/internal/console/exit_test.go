//go:build unix

package console

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/job"
	"github.com/multilock/go/lockgroup"
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

// Of several errors the one counts that says most about what the user has to do; how the
// job ended only if nothing else went wrong.
func TestWhichErrorCounts(t *testing.T) {
	t.Parallel()
	lost := &multilock.LostError{Name: "x", Err: errors.New("broken")}
	held := &multilock.HeldError{Name: "x"}
	failed := &JobError{Result: job.Result{Code: 3}}
	for code, err := range map[int]error{
		ExitOK:          nil,
		3:               failed,
		127:             &job.NotFoundError{Command: "x"},
		126:             fmt.Errorf("start: %w", &job.NotRunnableError{Command: "x"}),
		ExitFailure:     Usagef("run", "no command"),
		ExitLost:        errors.Join(lost, failed),
		ExitHeld:        fmt.Errorf("take: %w", held),
		ExitUnsure:      errors.Join(multilock.ErrUnsure, failed),
		ExitNotDone:     errors.Join(lockgroup.ErrNotDone, lost),
		ExitTimeLimit:   errors.Join(lost, &CodedError{Code: ExitTimeLimit, Text: "too long"}, failed),
		ExitStarved:     &CodedError{Code: ExitStarved, Text: "refused", Err: held},
		7:               &RefusedError{Code: 7, Err: held},
		ExitSignal + 15: errors.Join(held, Signalled(syscall.SIGTERM)),
		ExitSignal + 2:  errors.Join(lockgroup.ErrNotDone, Signalled(os.Interrupt)),
	} {
		require.Equal(t, code, ExitCode(err), "%v", err)
	}
	require.Equal(t, ExitTimeLimit, ExitCode(errors.Join(ErrWaitOver, held)))
	require.Equal(t, ExitLost, ExitCode(errors.Join(&job.NotFoundError{Command: "x"}, lost)))
}
