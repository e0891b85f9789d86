package lockgroup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// OnceOptions configure how Once acquires the lock, and how often the work may run.
type OnceOptions struct {
	// Options are those of the lock.
	multilock.Options
	// Retries is how many more attempts follow a failure, across all hosts together.
	Retries int
	// RetryOn are the exit codes (see ExitError) that allow another attempt; all if empty.
	RetryOn []int
	// RetryDelay is the pause before the first retry: see Plan.Pause.
	RetryDelay time.Duration
	// Every, if not zero, runs the work once per tick across all hosts, by the source's clock. The
	// source must be a source.Timekeeper.
	Every Every
}

// FailedError means that the work has failed and has no attempts left.
type FailedError struct {
	Result multilock.Result
	// Err is the error of the work, nil if another process made the last attempt.
	Err error
}

func (e *FailedError) Error() string {
	text := fmt.Sprintf("the job %q has failed, attempt %d on %s was the last", e.Result.Name, e.Result.Attempt, e.Result.By.Host)
	if e.Result.Why != "" {
		text += ": " + e.Result.Why
	}
	return text
}

// Unwrap returns the error of the work.
func (e *FailedError) Unwrap() error { return e.Err }

// Once runs work under the lock name, at most once across all hosts: it skips work whose success is
// recorded, and retries failed work up to opt.Retries times. It records each attempt before the
// next one. Once waits for the lock as Acquire does.
//
// It returns the last recorded result: its own, or, if the work was skipped, the result of the process
// that ran it (Result.By).
//
// If a process ends before it records its attempt, the work runs again. "At most once" applies to the
// recorded success; the work itself must tolerate a second start.
//
// The context of work is cancelled when ctx is, or when the lock is lost; an error that work
// returns after that is not recorded. Once returns a *FailedError if no attempts are left;
// multilock.ErrUnsupported if the source keeps no results; and multilock.ErrUnsure, joined to the
// error of work, if it is unknown whether a result was recorded.
func Once(ctx context.Context, src multilock.Source, name string, opt OnceOptions, work func(context.Context) error) (_ multilock.Result, err error) {
	attempts, err := newOnce(src, name, opt)
	if err != nil {
		return multilock.Result{}, err
	}
	seen, err := attempts.Peek(ctx, name)
	if errors.Is(err, multilock.ErrUnsupported) {
		return multilock.Result{}, err
	}
	if err == nil && seen.Step != StepRun { // otherwise decide under the lock
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
	plan := &Plan{Retries: opt.Retries, RetryOn: opt.RetryOn, RetryDelay: opt.RetryDelay, Every: opt.Every}
	return Attempts{Source: src, Plan: plan}, plan.Check()
}

// settled returns the error of a job with nothing left to do. failure is the error of work if this
// call made the last attempt.
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
