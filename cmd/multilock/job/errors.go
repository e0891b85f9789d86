package job

import (
	"fmt"
	"strings"
)

// NotFoundError says that there is no such command.
type NotFoundError struct {
	Command string // as it was given
	Err     error  // wraps the system's error where there was one
}

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("%s: command not found", e.Command)
}

// Unwrap returns the system's error.
func (e *NotFoundError) Unwrap() error { return e.Err }

// JobCode is the code with which shells exit then.
func (e *NotFoundError) JobCode() int { return 127 }

// NotRunnableError says that the command is there and cannot be run.
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

// JobCode is the code with which shells exit then.
func (e *NotRunnableError) JobCode() int { return 126 }

// LingeringError says that processes of the job still lived long after SIGKILL
// was sent to them: they hang in the kernel (an unreachable file server), are
// stopped by a debugger, or belong to a user we may not signal.
type LingeringError struct {
	PIDs []int
}

func (e *LingeringError) Error() string {
	pids := strings.Trim(fmt.Sprint(e.PIDs), "[]")
	return fmt.Sprintf("stop job: still alive after SIGKILL: %s", pids)
}
