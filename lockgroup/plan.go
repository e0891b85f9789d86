package lockgroup

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// Plan limits how often a job may run. The zero value means once.
type Plan struct {
	// Retries is how many more attempts follow a failure, across all hosts together.
	Retries int
	// RetryOn are the exit codes that allow another attempt; all but 0 if empty.
	RetryOn []int
	// RetryDelay is the pause before the first retry: see Pause.
	RetryDelay time.Duration
	// Every, if not zero, makes the job run once per tick.
	Every Every
	// CatchUp selects what happens with ticks that had no run.
	CatchUp CatchUp
}

// Period is how often the job runs, as recorded in its lock: see multilock.Recurring.
func (p Plan) Period() string { return cmp.Or(p.Every.String(), source.EveryOnce) }

// Step is the next action of a Plan.
type Step int

const (
	// StepRun means that the job is to run, as the attempt in the Decision.
	StepRun Step = iota
	// StepDone means that the job has succeeded.
	StepDone
	// StepFailed means that the job has failed and has no attempts left.
	StepFailed
	// StepUnclear means that there is a result in an unknown format. The job counts as run, and its
	// outcome is unknown.
	StepUnclear
)

// Decision is what a Plan decides for a job. All fields but Step are only set with StepRun.
type Decision struct {
	Step Step
	// Attempt is the number of the attempt, from 1.
	Attempt int
	// Tick and Began are those of the attempt's result, see multilock.Result; zero for a job that runs
	// only once.
	Tick, Began time.Time
	// Missed counts the skipped ticks since the last run.
	Missed int
	// InFuture means that the last result is for a tick too far in the future, and is ignored:
	// the source's clock was wrong, or Every was changed.
	InFuture bool
	// Better, if not zero, is an Every that suits this start time. It is set when the job starts
	// more than two fifths of the span from its tick: a little more delay would select another
	// tick.
	Better Every
}

// Now returns the time that Next needs: the source's time, or zero without Every. The error is
// multilock.ErrUnsupported if the source has no clock.
func (p Plan) Now(ctx context.Context, src multilock.Source) (time.Time, error) {
	if p.Every.IsZero() {
		return time.Time{}, nil
	}
	clock, ok := src.(source.Timekeeper)
	if !ok {
		return time.Time{}, fmt.Errorf("a job for every tick: %w: the source has no clock", multilock.ErrUnsupported)
	}
	return bounded.Change(ctx, clock.Now)
}

// Next decides what to do at a time of the source's clock, given the last committed result, which may
// be nil. The decision is final if the time was read under the lock.
//
// A result that was recorded as final stays final, even if this plan allows more retries, because
// other processes may have relied on it. Each tick starts with attempt 1. A run within half a span
// after the first attempt for the previous tick still counts for that tick.
func (p Plan) Next(now time.Time, last *multilock.Result) Decision {
	switch {
	case last == nil:
		return p.first(now, time.Time{})
	case last.Foreign != "":
		return Decision{Step: StepUnclear}
	case p.catchesUp() && !last.Tick.IsZero() && !p.Every.inFuture(now, last):
		return p.catchUp(now, last)
	case p.Every.IsZero() || !last.Tick.IsZero() && !p.Every.due(now, last):
		return p.Again(*last)
	case p.Every.inFuture(now, last):
		d := p.first(now, time.Time{})
		d.InFuture = true
		return d
	}
	return p.first(now, last.Tick)
}

// first returns the decision for the first attempt of a tick.
func (p Plan) first(now, last time.Time) Decision {
	if p.Every.IsZero() {
		return Decision{Attempt: 1}
	}
	if p.catchesUp() && p.Every.phased {
		return Decision{Attempt: 1, Tick: p.Every.come(now), Began: now.UTC()}
	}
	tick := p.Every.tick(now, last)
	return Decision{Attempt: 1, Tick: tick, Began: now.UTC(), Missed: p.Every.missed(last, tick), Better: p.Every.better(now, tick)}
}

// Again decides whether another attempt for the same tick follows this result.
func (p Plan) Again(last multilock.Result) Decision {
	switch {
	case last.OK():
		return Decision{Step: StepDone}
	case last.Final, p.isLast(last, last.Attempt):
		return Decision{Step: StepFailed}
	}
	return Decision{Attempt: last.Attempt + 1, Tick: last.Tick, Began: last.Began, Missed: last.Missed}
}

// Complete adds the decision to the result of an attempt: its number, its tick, and whether it is
// final.
func (p Plan) Complete(r multilock.Result, d Decision) multilock.Result {
	r.Attempt, r.Tick, r.Began, r.Missed, r.Every = d.Attempt, d.Tick, d.Began, d.Missed, p.Every.String()
	r.Final = r.OK() || p.isLast(r, d.Attempt)
	return r
}

// Pause returns how long to wait before an attempt: RetryDelay before the second one, doubled before
// each further one up to 32 times RetryDelay, and varied at random by up to a quarter.
func (p Plan) Pause(attempt int) time.Duration {
	if p.RetryDelay == 0 || attempt < 2 {
		return 0
	}
	pause := p.RetryDelay << min(attempt-2, 5)
	return pause*3/4 + rand.N(pause/2+1) //nolint:gosec // jitter needs no secrecy
}

// isLast reports whether no attempt follows a failed one.
func (p Plan) isLast(r multilock.Result, attempt int) bool {
	return attempt > p.Retries || len(p.RetryOn) > 0 && !slices.Contains(p.RetryOn, r.Exit)
}

// Check validates the plan. The error is a *multilock.InvalidError.
func (p Plan) Check() error {
	if p.Retries < 0 {
		return &source.InvalidError{What: "retries", Got: strconv.Itoa(p.Retries), Why: "must not be negative"}
	}
	if p.RetryDelay < 0 {
		return &source.InvalidError{What: "retry delay", Got: p.RetryDelay.String(), Why: "must not be negative"}
	}
	return p.Every.check()
}
