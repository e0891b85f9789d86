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

// Exit codes. They avoid codes that jobs use, and follow timeout(1) and env(1) from 124 on.
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
     0  done; "run" ends with the job's own code
     1  "wait", "batch": a job failed or died, its output could not be stored,
        or "batch" was halted by failures; "doctor": there is a warning
   120  held by the same process N times in a row (run --fail-after N)
   121  held by another process (or the code of -E); also from "status NAME"
   122  the lock was lost while it was held
   123  unknown: the lock's state, or whether a result was recorded
   124  a time limit passed (--wait, --max-runtime, or a lock that ends by time)
   125  multilock itself failed, or wrong usage
   126  the command cannot be run
   127  the command was not found
 128+n  killed by signal n
Only "overdue" has the codes of monitoring plugins: 0 OK, 1 WARNING,
2 CRITICAL, 3 UNKNOWN (multilock overdue --help).`

// CodedError is an error with its own exit code.
type CodedError struct {
	Code int
	Text string // the message; the text of Err if empty
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

// RefusedError means that the lock is held, and has the exit code that the user chose for that.
type RefusedError struct {
	Code int
	Err  error
}

func (e *RefusedError) Error() string { return e.Err.Error() }
func (e *RefusedError) Unwrap() error { return e.Err }
func (e *RefusedError) exitCode() int { return e.Code }

// SignalError means that a signal to multilock ended the command.
type SignalError struct{ Signal syscall.Signal }

func (e *SignalError) Error() string { return "stopped by signal: " + e.Signal.String() }
func (e *SignalError) exitCode() int { return ExitSignal + int(e.Signal) }

// Signalled returns the cause of a context that a signal ended.
func Signalled(s os.Signal) *SignalError {
	number, ok := s.(syscall.Signal)
	if !ok {
		number = syscall.SIGTERM
	}
	return &SignalError{number}
}

// Exit codes of monitoring plugins, as defined by Nagios and compatible programs.
const (
	ExitMonitorOK = iota
	ExitMonitorWarning
	ExitMonitorCritical
	ExitMonitorUnknown
)

// ReportedError ends a command that has already printed all messages.
type ReportedError struct{ Code int }

func (e *ReportedError) Error() string { return fmt.Sprintf("ended with code %d", e.Code) }
func (e *ReportedError) exitCode() int { return e.Code }

// UsageError means that the command line is wrong.
type UsageError struct {
	Command string // "" for the program itself
	Err     error
}

// MonitorCommand is the command with the exit codes of a monitoring plugin.
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

// Usagef makes a UsageError.
func Usagef(command, format string, args ...any) error {
	return &UsageError{Command: command, Err: fmt.Errorf(format, args...)}
}

// JobError has the outcome of a job that multilock ran without an error of its own.
type JobError struct{ Result job.Result }

func (e *JobError) Error() string { return fmt.Sprintf("the job ended with code %d", e.Result.Code) }

// JobCode returns the job's own code.
func (e *JobError) JobCode() int { return e.Result.Code }

// ExitCode maps an error to an exit code. The errors above have their own; errors of packages that
// know no exit codes are listed here. The job's own code is used if nothing else failed.
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

// pastDeadline reports whether one of our own time limits has passed. A server that does not answer in
// time is an ordinary failure.
func pastDeadline(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) && !errors.As(err, new(*source.OpError))
}
