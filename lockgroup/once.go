package lockgroup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/multilock/go/multilock"
)

// OnceOptions say how Once acquires the lock, and how often the work may run.
type OnceOptions struct {
	// Options are those of the lock.
	multilock.Options
	// Retries is how many more attempts follow a failure, over all hosts together.
	Retries int
	// Every, if not zero, makes the work run once per tick over all hosts, by the
	// source's clock: the source must be a multilock.Timekeeper.
	Every Every
}

// FailedError says that the work of a name has failed as often as it may.
type FailedError struct {
	Result multilock.Result
	// Err is the error of the work, nil if the last attempt was somebody else's.
	Err error
}

func (e *FailedError) Error() string {
	text := fmt.Sprintf("the job %q has failed, attempt %d on %s was the last", e.Result.Name, e.Result.Attempt, e.Result.By.Host)
	if e.Result.Why != "" {
		text += ": " + e.Result.Why
	}
	return text
}

// Unwrap gives the error of the work.
func (e *FailedError) Unwrap() error { return e.Err }

// Once runs work under the lock name, at most once: if its success is recorded
// it is skipped, on whichever host it ran, and after a failure it is tried again
// as often as opt.Retries says. Each attempt is recorded before the next one
// begins. Once waits for the lock as Acquire does.
//
// A process that ends before its attempt was recorded has not run it as far as
// anybody can know: the work is run again. So "at most once" is true of the
// record of its success; the work itself must bear to be begun twice.
//
// The context that work gets is cancelled when ctx is, or when the lock is lost;
// an error that it returns after that is no failure of the work, and is not
// recorded. The error of Once is a *FailedError if the attempts are used up;
// multilock.ErrUnsupported if the source keeps no results; multilock.ErrUnsure
// joined to what is known if it cannot be learned whether a result was recorded.
func Once(ctx context.Context, src multilock.Source, name string, opt OnceOptions, work func(context.Context) error) (multilock.Result, error) {
	o, err := newOnce(src, name, opt)
	if err != nil {
		return multilock.Result{}, err
	}
	o.work = work
	now, err := o.plan.Now(ctx, src)
	if err != nil {
		return multilock.Result{}, err
	}
	if last := o.peek(ctx); last != nil {
		if step := o.plan.Next(now, last).Step; step == Done || step == Failed {
			return *last, settled(step, *last)
		}
	}
	lock, err := multilock.Acquire(ctx, src, name, opt.Options)
	if err != nil {
		return multilock.Result{}, err
	}
	return o.run(ctx, lock)
}

// once is one call of Once.
type once struct {
	src    multilock.Source
	ledger multilock.Ledger
	name   string
	plan   Plan
	work   func(context.Context) error
}

func newOnce(src multilock.Source, name string, opt OnceOptions) (*once, error) {
	ledger, ok := src.(multilock.Ledger)
	if !ok {
		return nil, fmt.Errorf("run %q once: %w: it keeps no results of jobs", name, multilock.ErrUnsupported)
	}
	plan := Plan{Retries: opt.Retries, Every: opt.Every}
	return &once{src: src, ledger: ledger, name: name, plan: plan}, plan.check()
}

// peek looks for a result without taking the lock; nil if it sees none. One that it
// sees was committed. That there is none, or that a job may be run again, is for
// the lock's holder to learn, and so is any error.
func (o *once) peek(ctx context.Context) *multilock.Result {
	last, err := prompt(ctx, func(ctx context.Context) (multilock.Result, error) { return o.ledger.Result(ctx, o.name) })
	if err != nil {
		return nil
	}
	return &last
}

// settled is the error for a job that is not run, given its last result.
func settled(step Step, last multilock.Result) error {
	switch step {
	case Failed:
		return &FailedError{Result: last}
	case Unclear:
		return fmt.Errorf("the result of the job %q: %w: %s", last.Name, multilock.ErrUnsure, last.Foreign)
	case Run, Done:
	}
	return nil
}

// run makes attempts until nothing is left to be done, and releases the lock.
func (o *once) run(ctx context.Context, lock *multilock.Lock) (result multilock.Result, err error) {
	defer func() { err = errors.Join(err, lock.Release(context.WithoutCancel(ctx))) }()
	last, err := outcome(ctx, lock)
	if err != nil {
		return multilock.Result{}, err
	}
	now, err := o.plan.Now(ctx, o.src)
	if err != nil {
		return multilock.Result{}, err
	}
	var failure error
	d := o.plan.Next(now, last)
	for d.Step == Run {
		last, failure, err = o.attempt(ctx, lock, d)
		if err != nil {
			return multilock.Result{}, errors.Join(failure, err)
		}
		d = o.plan.Again(*last)
	}
	return *last, withCause(settled(d.Step, *last), failure)
}

// outcome is the last committed result, nil if there is none.
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

// withCause gives the error of a failed job its own last attempt's.
func withCause(err, cause error) error {
	var failed *FailedError
	if errors.As(err, &failed) {
		failed.Err = cause
	}
	return err
}

// attempt runs the work and records how it ended. Failure is the error of the
// work, err what kept it from being recorded.
func (o *once) attempt(ctx context.Context, lock *multilock.Lock, d Decision) (_ *multilock.Result, failure, err error) {
	start := time.Now()
	failure, interrupted := during(ctx, lock, o.work)
	if interrupted != nil {
		return nil, failure, interrupted
	}
	r := resultOf(lock.Record(), failure)
	r.Start, r.Duration = start, time.Since(start)
	r = o.plan.Complete(r, d)
	return &r, failure, lock.Commit(context.WithoutCancel(ctx), r)
}

// resultOf is the result of work that returned err, with the exit codes that a
// command would have.
func resultOf(record multilock.Record, err error) multilock.Result {
	r := multilock.Result{
		Name: record.Name, Token: record.Token, By: record.Holder.Identity, User: record.Holder.User, Command: record.Holder.Command,
	}
	if err != nil {
		r.Exit, r.Why = 1, err.Error()
	}
	return r
}
