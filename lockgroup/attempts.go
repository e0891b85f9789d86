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

// Attempts is how the job of a name is run under its lock: what is recorded is looked at,
// the job is run as often as its Plan says, and how each attempt ended is recorded before
// the next one begins. Once, package batch and the command "multilock run" differ in what
// they put in here, and in how they take and give back the lock.
type Attempts struct {
	// Source is where the lock is; it must be a source.Ledger if there is a Plan.
	Source multilock.Source
	// Plan says how often the job may run. Without one it runs once, whatever is
	// recorded, and nothing is.
	Plan *Plan
	// Work makes one attempt. The result says how that ended (Exit, Signal, Why, Output);
	// the rest is filled in, but Start and Duration only if they are zero. With an error
	// nothing is recorded, there is no further attempt, and Run returns that error. The
	// context is that of Run, and does not end with the lock.
	Work func(ctx context.Context, a Attempt) (multilock.Result, error)
	// Recorded hears of each result that was recorded, before the next attempt. May be nil.
	Recorded func(ctx context.Context, r multilock.Result)
}

// Attempt is one run of a job under its lock.
type Attempt struct {
	// Decision is why there is this attempt. It is zero without a Plan.
	Decision
	// Lock is held, and is not to be released.
	Lock *multilock.Lock
	// First says that this is the first attempt under this lock, whatever its number.
	First bool
	// Last is the result that was recorded before, by whomever; nil if there is none.
	Last *multilock.Result
	// Now is the source's time at which it was decided; zero without Every.
	Now time.Time

	read time.Time // this host's, when Now was read
}

// Outcome is how things stand with a job.
type Outcome struct {
	// Step is StepRun as long as something is left to be done, or that is not known.
	Step Step
	// Last is the last result that is recorded, nil if there is none.
	Last *multilock.Result
	// Ran is how many attempts were made and recorded.
	Ran int
}

// Peek looks, without the lock, whether nothing is left to be done. What it finds was
// recorded; that the job is to be run can only be learned under the lock.
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

// Run makes attempts until nothing is left to be done. The error is that of Work, an
// *UnrecordedError, or what kept it from learning what is recorded; the Outcome is then
// how things stood before.
func (a Attempts) Run(ctx context.Context, lock *multilock.Lock) (Outcome, error) {
	next, err := a.look(ctx, lock)
	if err != nil {
		return Outcome{}, err
	}
	out := Outcome{Last: next.Last}
	for ; next.Step == StepRun; next.First = false {
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

// look decides, under the lock, about the first attempt.
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

// outcome is the last recorded result, nil if there is none.
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

// attempt makes one attempt and records how it ended.
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

// succeeded is when the last success ended, that of this result or one before, by the
// source's clock. Of a job that runs once and for all its result says enough.
func (a Attempt) succeeded(r multilock.Result) time.Time {
	switch {
	case a.Now.IsZero():
		return time.Time{}
	case r.OK():
		return a.Now.Add(time.Since(a.read)).UTC()
	case a.Last == nil || a.Disbelieved:
		return time.Time{}
	}
	return a.Last.Succeeded
}

// UnrecordedError says that a job has ended, and that how it ended is not recorded:
// multilock.ErrLost if the lock was lost, multilock.ErrUnsure if it may be recorded after
// all. If it is not, the job will run again.
type UnrecordedError struct {
	Result multilock.Result
	Err    error
}

func (e *UnrecordedError) Error() string {
	return fmt.Sprintf("how the job %q ended is not recorded: %v", e.Result.Name, e.Err)
}

// Unwrap says why.
func (e *UnrecordedError) Unwrap() error { return e.Err }

var (
	// ErrNotRun says, in an error of a job's work, that it could not be run for a
	// reason that is not its own: nothing is recorded.
	ErrNotRun = errors.New("the job was not run")
	// ErrLingering says, in an error of a job's work, that parts of it are still at
	// work and cannot be ended: nothing is recorded, and the lock is left to its TTL.
	ErrLingering = errors.New("the job cannot be ended")
)

// ExitError is an error of a job's work that says how a command ended. With a Code of 0
// it has succeeded, and the Output is all that there is to say.
type ExitError struct {
	Code   int
	Signal string // that ended it, if one did
	Why    string // more about it, if there is more
	Output string // why what it printed is not kept as a whole, if it is not
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

// WhileHeld runs work with a context that also ends with the lock, and makes a result of
// its error, which may be an *ExitError. The error is ErrLingering or ErrNotRun if that of
// work says so; or the cause of the context, if work failed after its end: that is an
// interruption and no failure of the work.
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

// resultOf is the result of work that returned err, with the exit codes that a
// command would have.
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
