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

var (
	errWaitOver   = errors.New("the time to wait is over")
	errRuntimeOut = errors.New("the job ran for longer than --max-runtime")
)

// starvedError is a refusal that came once too often (--fail-after).
type starvedError struct {
	times int
	err   error
}

func (s *starvedError) Error() string {
	return fmt.Sprintf("refused %d times in a row by the same holder", s.times)
}
func (s *starvedError) Unwrap() error { return s.err }

// signalError is the end of a command by a signal to multilock itself.
type signalError struct{ signal syscall.Signal }

func (e *signalError) Error() string { return "stopped by signal: " + e.signal.String() }

// jobError carries the end of a job that has nothing wrong with it from our side.
type jobError struct{ result job.Result }

func (e *jobError) Error() string { return fmt.Sprintf("the job ended with code %d", e.result.Code) }

// exitCode is the only place that turns an error into an exit code.
func exitCode(err error) int {
	var (
		jobEnd      *jobError
		signalled   *signalError
		notFound    *job.NotFoundError
		notRunnable *job.NotRunnableError
		kept        *keptError
		starved     *starvedError
		failed      *failedBeforeError
		halted      *lockgroup.HaltError
		ill         *doctorError
	)
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &kept):
		return kept.answer.Code
	case errors.As(err, &failed):
		return failed.code()
	case errors.As(err, &ill):
		return ill.code()
	case errors.Is(err, errRuntimeOut), errors.Is(err, errWaitOver), errors.Is(err, multilock.ErrOver), pastDeadline(err):
		return exitTimeLimit
	case errors.As(err, &signalled):
		return exitSignal + int(signalled.signal)
	case errors.Is(err, lockgroup.ErrNotDone), errors.Is(err, errIncomplete):
		return exitNotDone
	case errors.As(err, &halted):
		return haltCode(halted)
	case errors.As(err, &starved):
		return exitStarved
	case errors.Is(err, multilock.ErrLost):
		return exitLost
	case errors.Is(err, multilock.ErrHeld):
		return exitHeld
	case errors.Is(err, multilock.ErrUnsure):
		return exitUnsure
	case errors.As(err, &jobEnd):
		return jobEnd.result.Code
	case errors.As(err, &notFound):
		return 127
	case errors.As(err, &notRunnable):
		return 126
	}
	return exitFailure
}

// pastDeadline says whether a limit of ours has passed. That a server did not answer
// in its own time is a failure like any other.
func pastDeadline(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) && !errors.As(err, new(*source.OpError))
}

// outcome is how the program is to end.
type outcome struct {
	code int
	job  job.Result // of a job that ran; else at most the signal that ended us
}

// leave dies by SIGINT if the job did, or if we were interrupted without one, so
// that a shell's loop around us ends as it would without us.
func (o outcome) leave() {
	if o.code == exitSignal+int(syscall.SIGINT) {
		o.job.Reraise()
	}
}

// conclude tells the user what went wrong, if that is ours to tell, and how to end.
func conclude(e *env, err error) outcome {
	o := outcome{code: exitCode(err)}
	refused := o.code == exitHeld
	var jobEnd *jobError
	if errors.As(err, &jobEnd) {
		o.job = jobEnd.result
	}
	var stopped *signalError
	if o.job.Signal == 0 && errors.As(err, &stopped) {
		o.job.Signal = stopped.signal
	}
	var custom *customCode
	if errors.As(err, &custom) && refused {
		o.code = custom.code
	}
	if refused && quiet(err) {
		return o
	}
	if text := explain(err); text != "" {
		e.say("%s", text)
	}
	return o
}

// customCode replaces the exit code for a lock that is held (-E).
type customCode struct {
	code int
	err  error
}

func (c *customCode) Error() string { return c.err.Error() }
func (c *customCode) Unwrap() error { return c.err }

// signalled is the cause of a context that a signal ended.
func signalled(s os.Signal) error {
	number, ok := s.(syscall.Signal)
	if !ok {
		number = syscall.SIGTERM
	}
	return &signalError{number}
}
