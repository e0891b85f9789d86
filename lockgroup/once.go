package lockgroup

import (
	"context"
	"errors"
	"fmt"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// OnceOptions say how Once acquires the lock, and how often the work may run.
type OnceOptions struct {
	// Options are those of the lock.
	multilock.Options
	// Retries is how many more attempts follow a failure, over all hosts together.
	Retries int
	// Every, if not zero, makes the work run once per tick over all hosts, by the
	// source's clock: the source must be a source.Timekeeper.
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
func Once(ctx context.Context, src multilock.Source, name string, opt OnceOptions, work func(context.Context) error) (_ multilock.Result, err error) {
	attempts, err := newOnce(src, name, opt)
	if err != nil {
		return multilock.Result{}, err
	}
	seen, err := attempts.Peek(ctx, name)
	if errors.Is(err, multilock.ErrUnsupported) {
		return multilock.Result{}, err
	}
	if err == nil && seen.Step != StepRun { // else it is for the lock's holder to learn what is to be done
		return *seen.Last, settled(seen, nil)
	}
	lock, err := multilock.Acquire(ctx, src, name, multilock.Recurring{Terms: opt.Options, Every: attempts.Plan.Period()})
	if err != nil {
		return multilock.Result{}, err
	}
	defer func() { err = errors.Join(err, lock.Release(context.WithoutCancel(ctx))) }()
	var failure error
	attempts.Work = func(ctx context.Context, a Attempt) (multilock.Result, error) {
		return WhileHeld(ctx, a.Lock, func(ctx context.Context) error { failure = work(ctx); return failure })
	}
	out, err := attempts.Run(ctx, lock)
	if err != nil {
		return multilock.Result{}, errors.Join(failure, err)
	}
	return *out.Last, settled(out, failure)
}

func newOnce(src multilock.Source, name string, opt OnceOptions) (Attempts, error) {
	if _, ok := src.(source.Ledger); !ok {
		return Attempts{}, fmt.Errorf("run %q once: %w: it keeps no results of jobs", name, multilock.ErrUnsupported)
	}
	plan := &Plan{Retries: opt.Retries, Every: opt.Every}
	return Attempts{Source: src, Plan: plan}, plan.Check()
}

// settled is the error of a job of which nothing is left to be done, with that of its
// work if this call has made the last attempt.
func settled(out Outcome, failure error) error {
	switch out.Step {
	case StepFailed:
		return &FailedError{Result: *out.Last, Err: failure}
	case StepUnclear:
		return fmt.Errorf("the result of the job %q: %w: %s", out.Last.Name, multilock.ErrUnsure, out.Last.Foreign)
	case StepRun, StepDone:
	}
	return nil
}
