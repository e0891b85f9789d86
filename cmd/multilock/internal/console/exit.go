package console

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
	ExitOK        = 0
	ExitNotDone   = 1
	ExitStarved   = 120
	ExitHeld      = 121
	ExitLost      = 122
	ExitUnsure    = 123
	ExitTimeLimit = 124
	ExitFailure   = 125
	ExitSignal    = 128
)

// ExitTable is printed in the help text.
const ExitTable = `Exit codes:
     0  done; "run" passes the job's own code through
     1  "wait", "batch": a job failed or died, its output could not be kept,
        or "batch" was halted by failures; "doctor": there is a warning
   120  held by somebody, for the N-th time in a row (run --fail-after N)
   121  held by somebody (or the code of -E); "status NAME" says so, too
   122  the lock was lost while it was held
   123  cannot tell: the lock's state, or whether a result was recorded
   124  a time limit passed (--wait, --max-runtime, or a lock that ends by time)
   125  a failure of multilock itself, wrong usage included
   126  the command cannot be run
   127  the command was not found
 128+n  killed by signal n
"overdue" alone ends as monitoring expects it: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.`

// CodedError is an error that says itself which exit code it means.
type CodedError struct {
	Code int
	Text string // what it says; what Err does if it is empty
	Err  error  // may be nil
}

func (e *CodedError) Error() string {
	if e.Text == "" {
		return e.Err.Error()
	}
	return e.Text
}

func (e *CodedError) Unwrap() error { return e.Err }
func (e *CodedError) exitCode() int { return e.Code }

// RefusedError is the end of a command because somebody else holds the lock, where the
// user has chosen the exit code for that.
type RefusedError struct {
	Code int
	Err  error
}

func (e *RefusedError) Error() string { return e.Err.Error() }
func (e *RefusedError) Unwrap() error { return e.Err }
func (e *RefusedError) exitCode() int { return e.Code }

// SignalError is the end of a command by a signal to multilock itself.
type SignalError struct{ Signal syscall.Signal }

func (e *SignalError) Error() string { return "stopped by signal: " + e.Signal.String() }
func (e *SignalError) exitCode() int { return ExitSignal + int(e.Signal) }

// Signalled is the cause of a context that a signal ended.
func Signalled(s os.Signal) *SignalError {
	number, ok := s.(syscall.Signal)
	if !ok {
		number = syscall.SIGTERM
	}
	return &SignalError{number}
}

// Exit codes of what monitors other programs, as Nagios and its kin understand them.
const (
	ExitMonitorOK = iota
	ExitMonitorWarning
	ExitMonitorCritical
	ExitMonitorUnknown
)

// ToldError is the end of a command that has told all there is to say.
type ToldError struct{ Code int }

func (e *ToldError) Error() string { return fmt.Sprintf("ended with code %d", e.Code) }
func (e *ToldError) exitCode() int { return e.Code }

// UsageError is a wrong command line.
type UsageError struct {
	Command string // "" for the program itself
	Err     error
}

// MonitorCommand has the exit codes of what monitors other programs.
const MonitorCommand = "overdue"

func (u *UsageError) exitCode() int {
	if u.Command == MonitorCommand {
		return ExitMonitorUnknown
	}
	return ExitFailure
}

func (u *UsageError) Error() string {
	if u.Command == "" {
		return u.Err.Error()
	}
	return fmt.Sprintf("%s: %v", u.Command, u.Err)
}

func (u *UsageError) Unwrap() error { return u.Err }

// Usagef makes one of them.
func Usagef(command, format string, args ...any) error {
	return &UsageError{Command: command, Err: fmt.Errorf(format, args...)}
}

// JobError carries the end of a job that has nothing wrong with it from our side.
type JobError struct{ Result job.Result }

func (e *JobError) Error() string { return fmt.Sprintf("the job ended with code %d", e.Result.Code) }

// JobCode is the job's own code.
func (e *JobError) JobCode() int { return e.Result.Code }

// ExitCode is the only place that turns an error into an exit code. The errors above
// carry their own; what packages say that know nothing of exit codes is listed here. How
// a job ended counts if nothing else went wrong.
func ExitCode(err error) int {
	var own interface{ exitCode() int }
	var ofJob interface{ JobCode() int }
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(err, multilock.ErrOver), pastDeadline(err):
		return ExitTimeLimit
	case errors.As(err, &own):
		return own.exitCode()
	case errors.Is(err, lockgroup.ErrNotDone):
		return ExitNotDone
	case errors.Is(err, multilock.ErrLost):
		return ExitLost
	case errors.Is(err, multilock.ErrHeld):
		return ExitHeld
	case errors.Is(err, multilock.ErrUnsure):
		return ExitUnsure
	case errors.As(err, &ofJob):
		return ofJob.JobCode()
	}
	return ExitFailure
}

// pastDeadline says whether a limit of ours has passed. That a server did not answer
// in its own time is a failure like any other.
func pastDeadline(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) && !errors.As(err, new(*source.OpError))
}
