package job

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// Result is the outcome of the command, the direct child.
type Result struct {
	// Code is the exit code, or 128 + n if signal n killed the command.
	Code int
	// Signal is the signal that killed the command, 0 if it exited by itself. A caller whose job died of
	// SIGINT should die of it as well, because shells decide by that whether to continue: see
	// Result.Reraise.
	Signal syscall.Signal
	// Terminal means that the job had the terminal when it ended, so that a key like Ctrl-C reached
	// the job and not the runner's process group.
	Terminal bool
	// Started is when the command started.
	Started time.Time
	// Elapsed is the time from Started to its end, by the monotonic clock.
	Elapsed time.Duration
}

// Asks reports whether a signal asks a program to end: SIGHUP, SIGINT, SIGQUIT, SIGTERM.
func Asks(sig os.Signal) bool {
	return sig == syscall.SIGHUP || sig == syscall.SIGINT || sig == syscall.SIGQUIT || sig == syscall.SIGTERM
}

// Asked returns the signal to end that killed the command, or that its exit code indicates, like the
// code of a shell whose child died of that signal; else 0.
func (r Result) Asked() syscall.Signal {
	sig := r.Signal
	if sig == 0 {
		sig = syscall.Signal(r.Code - 128)
	}
	if !Asks(sig) {
		return 0
	}
	return sig
}

// NotFoundError means that the command does not exist.
type NotFoundError struct {
	Command string // as it was given
	Err     error  // wraps the system's error, if any
}

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("%s: command not found", e.Command)
}

// Unwrap returns the system's error.
func (e *NotFoundError) Unwrap() error { return e.Err }

// JobCode returns the exit code of shells in this case.
func (e *NotFoundError) JobCode() int { return 127 }

// NotRunnableError means that the command exists and cannot be run.
type NotRunnableError struct {
	Command string // as it was given
	Reason  string // for people
	Err     error  // wraps the system's error
}

func (e *NotRunnableError) Error() string {
	return fmt.Sprintf("%s: cannot be run: %s", e.Command, e.Reason)
}

// Unwrap returns the system's error.
func (e *NotRunnableError) Unwrap() error { return e.Err }

// JobCode returns the exit code of shells in this case.
func (e *NotRunnableError) JobCode() int { return 126 }

// LingeringError means that processes of the job were still alive long after SIGKILL: they hang in the
// kernel (an unreachable file server), are stopped by a debugger, or belong to another user.
type LingeringError struct {
	PIDs []int
}

func (e *LingeringError) Error() string {
	pids := strings.Trim(fmt.Sprint(e.PIDs), "[]")
	return fmt.Sprintf("stop job: still alive after SIGKILL: %s", pids)
}
