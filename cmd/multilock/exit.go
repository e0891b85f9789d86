package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/multilock/go/cmd/multilock/job"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// Exit codes. They stay clear of what jobs use themselves, and follow timeout(1)
// and env(1) from 124 on.
const (
	exitOK        = 0
	exitNotDone   = 1
	exitStarved   = 120
	exitHeld      = 121
	exitLost      = 122
	exitUnsure    = 123
	exitTimeLimit = 124
	exitFailure   = 125
	exitSignal    = 128
)

// exitTable is printed in the help text.
const exitTable = `Exit codes:
     0  done; "run" passes the job's own code through
     1  "wait", "batch": a job failed or died, its output could not be kept, or "batch"
        was halted by failures; "doctor": there is a warning
   120  held by somebody, for the N-th time in a row (run --fail-after N)
   121  held by somebody (or the code of -E)
   122  the lock was lost while it was held
   123  cannot tell: the lock's state, or whether a result was recorded, could not be learned
   124  a time limit passed (--wait, --max-runtime, or that of a lock that ends by time)
   125  a failure of multilock itself, wrong usage included
   126  the command cannot be run
   127  the command was not found
 128+n  killed by signal n`

// codedError is an error that says itself which exit code it means.
type codedError struct {
	Code int
	Text string // what it says; what Err does if it is empty
	Err  error  // may be nil
}

func (e *codedError) Error() string {
	if e.Text == "" {
		return e.Err.Error()
	}
	return e.Text
}

func (e *codedError) Unwrap() error { return e.Err }

func (e *codedError) exitCode() int { return e.Code }

// refusedError is the end of a command because somebody else holds the lock, where the
// user has chosen the exit code for that.
type refusedError struct {
	Code int
	Err  error
}

func (e *refusedError) Error() string { return e.Err.Error() }
func (e *refusedError) Unwrap() error { return e.Err }
func (e *refusedError) exitCode() int { return e.Code }

// signalError is the end of a command by a signal to multilock itself.
type signalError struct{ Signal syscall.Signal }

func (e *signalError) Error() string { return "stopped by signal: " + e.Signal.String() }
func (e *signalError) exitCode() int { return exitSignal + int(e.Signal) }

// signalled is the cause of a context that a signal ended.
func signalled(s os.Signal) *signalError {
	number, ok := s.(syscall.Signal)
	if !ok {
		number = syscall.SIGTERM
	}
	return &signalError{number}
}

// usageProblem is a wrong command line.
type usageProblem struct {
	command string // "" for the program itself
	err     error
}

func (u *usageProblem) Error() string {
	if u.command == "" {
		return u.err.Error()
	}
	return fmt.Sprintf("%s: %v", u.command, u.err)
}

func (u *usageProblem) Unwrap() error { return u.err }

// usagef makes one of them.
func usagef(command, format string, args ...any) error {
	return &usageProblem{command: command, err: fmt.Errorf(format, args...)}
}

// jobError carries the end of a job that has nothing wrong with it from our side.
type jobError struct{ Result job.Result }

func (e *jobError) Error() string { return fmt.Sprintf("the job ended with code %d", e.Result.Code) }

// JobCode is the job's own code.
func (e *jobError) JobCode() int { return e.Result.Code }

// exitCode is the only place that turns an error into an exit code. The errors above
// carry their own; what packages say that know nothing of exit codes is listed here. How
// a job ended counts if nothing else went wrong.
func exitCode(err error) int {
	var own interface{ exitCode() int }
	var ofJob interface{ JobCode() int }
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, multilock.ErrOver), pastDeadline(err):
		return exitTimeLimit
	case errors.As(err, &own):
		return own.exitCode()
	case errors.Is(err, lockgroup.ErrNotDone):
		return exitNotDone
	case errors.Is(err, multilock.ErrLost):
		return exitLost
	case errors.Is(err, multilock.ErrHeld):
		return exitHeld
	case errors.Is(err, multilock.ErrUnsure):
		return exitUnsure
	case errors.As(err, &ofJob):
		return ofJob.JobCode()
	}
	return exitFailure
}

// pastDeadline says whether a limit of ours has passed. That a server did not answer
// in its own time is a failure like any other.
func pastDeadline(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) && !errors.As(err, new(*source.OpError))
}
