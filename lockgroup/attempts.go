package lockgroup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// Attempts runs a job under its lock: it reads the recorded result, makes as many attempts as the
// Plan allows, and records each result before the next attempt. Once and the command "multilock run"
// share this loop, and differ in Work and in how they acquire the lock.
type Attempts struct {
	// Source holds the lock. With a Plan it must be a source.Ledger.
	Source multilock.Source
	// Plan limits how often the job may run. If nil, the job runs once and nothing is recorded.
	Plan *Plan
	// Work makes one attempt and returns how it ended (Exit, Signal, Why, Output). Start and
	// Duration are filled in if zero, the other fields always. An error ends Run, and nothing is
	// recorded. The context is that of Run; it does not end with the lock.
	Work func(ctx context.Context, a Attempt) (multilock.Result, error)
	// Recorded, if not nil, is called with each recorded result, before the next attempt.
	Recorded func(ctx context.Context, r multilock.Result)
	// Retry, if not nil, is called before each retry, to wait for the pause. If nil, Run waits, unless
	// ctx ends or the lock is lost.
	Retry func(ctx context.Context, next Attempt, pause time.Duration)
}

// Attempt is one run of a job under its lock.
type Attempt struct {
	// Decision is why this attempt is made. It is zero without a Plan.
	Decision
	// Lock is held. Work must not release it.
	Lock *multilock.Lock
	// First is true for the first attempt under this lock, whatever its number.
	First bool
	// Last is the previous recorded result, from any host; nil before the first.
	Last *multilock.Result
	// Now is the source's time of the decision; zero without Every.
	Now time.Time

	read time.Time // this host's time when Now was read
}

// Outcome is the state of a job after attempts.
type Outcome struct {
	// Step is StepRun if work is left, or if that is unknown.
	Step Step
	// Last is the last recorded result, nil without one.
	Last *multilock.Result
	// Ran counts the attempts that were made and recorded.
	Ran int
}

// Peek checks without the lock whether the job is finished. StepRun is only a hint: whether the job
// must run is decided under the lock.
func (a Attempts) Peek(ctx context.Context, name string) (Outcome, error) {
	ledger, ok := a.Source.(source.Ledger)
	if a.Plan == nil || !ok {
		return Outcome{}, nil
	}
	now, err := a.Plan.Now(ctx, a.Source)
	if err != nil {
		return Outcome{}, err
	}
	last, err := bounded.Call(ctx, func(ctx context.Context) (multilock.Result, error) { return ledger.Result(ctx, name) })
	switch {
	case errors.Is(err, multilock.ErrNoResult):
		return Outcome{}, nil
	case err != nil:
		return Outcome{}, err
	}
	step := a.Plan.Next(now, &last).Step
	if step == StepUnclear {
		step = StepRun
	}
	return Outcome{Step: step, Last: &last}, nil
}

// Run makes attempts until nothing is left to do. It returns the error of Work, an
// *UnrecordedError, or the error that prevented reading the recorded result. With an error, the
// Outcome is the one before the failed attempt.
func (a Attempts) Run(ctx context.Context, lock *multilock.Lock) (Outcome, error) {
	next, err := a.look(ctx, lock)
	if err != nil {
		return Outcome{}, err
	}
	out := Outcome{Last: next.Last}
	for ; next.Step == StepRun; next.First = false {
		if err := a.beforeRetry(ctx, next); err != nil {
			return out, err
		}
		result, err := a.attempt(ctx, next)
		if err != nil {
			return out, err
		}
		if a.Plan == nil {
			return Outcome{Step: StepDone, Ran: 1}, nil
		}
		out = Outcome{Last: &result, Ran: out.Ran + 1}
		next.Decision, next.Last = a.Plan.afterwards(next.Now, result), &result
	}
	out.Step = next.Step
	return out, nil
}

// beforeRetry waits for the pause before a retry under the same lock.
func (a Attempts) beforeRetry(ctx context.Context, next Attempt) error {
	if next.First || next.Attempt < 2 {
		return nil
	}
	pause := a.Plan.Pause(next.Attempt)
	if a.Retry != nil {
		a.Retry(ctx, next, pause)
		return nil
	}
	if pause == 0 {
		return nil
	}
	waiting, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(next.Lock.Context(), func() { stop(context.Cause(next.Lock.Context())) })()
	return bounded.Sleep(waiting, pause)
}

// look makes the decision for the first attempt, under the lock.
func (a Attempts) look(ctx context.Context, lock *multilock.Lock) (_ Attempt, err error) {
	first := Attempt{Lock: lock, First: true}
	if a.Plan == nil {
		return first, nil
	}
	if first.Last, err = outcome(ctx, lock); err != nil {
		return first, err
	}
	first.Now, err = a.Plan.Now(ctx, a.Source) // after the wait for the lock
	first.read = time.Now()
	first.Decision = a.Plan.Next(first.Now, first.Last)
	return first, err
}

// outcome returns the last recorded result, nil without one.
func outcome(ctx context.Context, lock *multilock.Lock) (*multilock.Result, error) {
	last, err := lock.Outcome(ctx)
	switch {
	case errors.Is(err, multilock.ErrNoResult):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &last, nil
}

// attempt makes one attempt and records its result.
func (a Attempts) attempt(ctx context.Context, next Attempt) (multilock.Result, error) {
	start := time.Now()
	r, err := a.Work(ctx, next)
	if err != nil || a.Plan == nil {
		return r, err
	}
	if r.Start.IsZero() {
		r.Start, r.Duration = start, time.Since(start)
	}
	record := next.Lock.Record()
	r.Name, r.Token, r.By = record.Name, record.Token, record.Holder.Identity
	r.User, r.Command = record.Holder.User, record.Holder.Command
	r = a.Plan.Complete(r, next.Decision)
	r.Succeeded = next.succeeded(r)
	if err := next.Lock.Commit(context.WithoutCancel(ctx), r); err != nil {
		return r, &UnrecordedError{r, err}
	}
	if a.Recorded != nil {
		a.Recorded(ctx, r)
	}
	return r, nil
}

// succeeded returns the end of the last success, by the source's clock. It is zero without ticks,
// where the result alone is enough.
func (a Attempt) succeeded(r multilock.Result) time.Time {
	switch {
	case a.Now.IsZero():
		return time.Time{}
	case r.OK():
		return a.Now.Add(time.Since(a.read)).UTC()
	case a.Last == nil || a.InFuture:
		return time.Time{}
	}
	return a.Last.Succeeded
}

// UnrecordedError means that a job ended and its result was not recorded. It wraps multilock.ErrLost
// if the lock was lost, and multilock.ErrUnsure if the commit may have succeeded. An unrecorded job
// will run again.
type UnrecordedError struct {
	Result multilock.Result
	Err    error
}

func (e *UnrecordedError) Error() string {
	return fmt.Sprintf("how the job %q ended is not recorded: %v", e.Result.Name, e.Err)
}

// Unwrap returns the cause.
func (e *UnrecordedError) Unwrap() error { return e.Err }

var (
	// ErrNotRun in an error of a job's work means that the job could not be run for a reason
	// outside the job. Nothing is recorded.
	ErrNotRun = errors.New("the job was not run")
	// ErrLingering in an error of a job's work means that some of its processes still run and cannot be
	// ended. Nothing is recorded, and the lock expires with its TTL.
	ErrLingering = errors.New("the job cannot be ended")
)

// ExitError is an error of a job's work with the exit status of a command. With Code 0 the command
// succeeded, and only Output is set.
type ExitError struct {
	Code   int
	Signal string // the signal that ended it, if any
	Why    string // details, if any
	Output string // why its output is incomplete, if it is
}

func (e *ExitError) Error() string {
	switch {
	case e.Why != "":
		return e.Why
	case e.Code == 0:
		return "its output is not complete: " + e.Output
	}
	return "it ended with a code that is not 0"
}

// WhileHeld runs work with a context that also ends with the lock, and turns its error, which may
// be an *ExitError, into a result. It returns an error of work that wraps ErrLingering or
// ErrNotRun. If work fails after its context ended, WhileHeld returns the context's cause: the work was
// interrupted, and did not fail.
func WhileHeld(ctx context.Context, lock *multilock.Lock, work func(context.Context) error) (multilock.Result, error) {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(lock.Context(), func() { cancel(context.Cause(lock.Context())) })
	defer stop()
	err := work(inner)
	switch {
	case errors.Is(err, ErrLingering), errors.Is(err, ErrNotRun):
		return multilock.Result{}, err
	case err != nil && inner.Err() != nil:
		return multilock.Result{}, context.Cause(inner)
	}
	return resultOf(err), nil
}

// resultOf maps an error of work to the exit code that a command would have.
func resultOf(err error) multilock.Result {
	var exit *ExitError
	switch {
	case err == nil:
		return multilock.Result{}
	case errors.As(err, &exit):
		return multilock.Result{Exit: exit.Code, Signal: exit.Signal, Why: exit.Why, Output: exit.Output}
	}
	return multilock.Result{Exit: 1, Why: err.Error()}
}
