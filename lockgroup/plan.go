package lockgroup

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// Plan says how often the job of a name may run. The zero value is: once.
type Plan struct {
	// Retries is how many more attempts follow a failure, over all hosts together.
	Retries int
	// Every, if not zero, makes the job run once per tick.
	Every Every
	// CatchUp says what becomes of ticks that went without a run.
	CatchUp CatchUp
}

// Period is what the job's lock records of the plan: see multilock.Recurring.
func (p Plan) Period() string { return cmp.Or(p.Every.String(), source.EveryOnce) }

// Step is what a Plan says is to be done next.
type Step int

const (
	// StepRun means that the job is to be run, as the attempt that is told.
	StepRun Step = iota
	// StepDone means that the job has succeeded.
	StepDone
	// StepFailed means that the job has failed, and is not to be tried again.
	StepFailed
	// StepUnclear means that there is a result which cannot be understood. The job
	// counts as run, and nobody knows how it ended.
	StepUnclear
)

// Decision is what a Plan says is to be done about the job of a name. All but Step
// goes with StepRun.
type Decision struct {
	Step Step
	// Attempt is the number of the attempt, from 1.
	Attempt int
	// Tick and Began are those of the attempt's result, see multilock.Result; zero
	// for a job that runs once and for all.
	Tick, Began time.Time
	// Missed is how many ticks since the last run go without one.
	Missed int
	// Disbelieved means that the last result is for a tick that cannot have been meant
	// yet: the source's clock was wrong, or Every was changed. It counts as none.
	Disbelieved bool
	// Better, if not zero, is what Every should be for a line that fires at this time:
	// more than two fifths of the span from its tick, a little more or less decides
	// which tick it means, and one may go without a run.
	Better Every
}

// Now is the time that Next needs: that of the source, or zero if the job runs once and
// for all. The error is multilock.ErrUnsupported if the source has no clock.
func (p Plan) Now(ctx context.Context, src multilock.Source) (time.Time, error) {
	if p.Every.IsZero() {
		return time.Time{}, nil
	}
	clock, ok := src.(source.Timekeeper)
	if !ok {
		return time.Time{}, fmt.Errorf("a job for every tick: %w: the source has no clock", multilock.ErrUnsupported)
	}
	return bounded.Call(ctx, clock.Now)
}

// Next decides what to do at a time of the source's clock, given the last committed
// result of the name; nil if there is none. Under the lock, with a time that was read
// under it, the decision is final.
//
// A result that its holder called final stays final, whatever this plan allows: others
// may have taken it for that. Each tick starts anew, but none within half a span after
// the first attempt for the one before: a run then is one more for that tick.
func (p Plan) Next(now time.Time, last *multilock.Result) Decision {
	switch {
	case last == nil:
		return p.first(now, time.Time{})
	case last.Foreign != "":
		return Decision{Step: StepUnclear}
	case p.catchesUp() && !last.Tick.IsZero() && !p.Every.disbelieves(now, last):
		return p.catchUp(now, last)
	case p.Every.IsZero() || !last.Tick.IsZero() && !p.Every.due(now, last):
		return p.Again(*last)
	case p.Every.disbelieves(now, last):
		d := p.first(now, time.Time{})
		d.Disbelieved = true
		return d
	}
	return p.first(now, last.Tick)
}

// first is the decision for the first attempt of a tick.
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

// Again decides whether another attempt follows this one, for the same tick.
func (p Plan) Again(last multilock.Result) Decision {
	switch {
	case last.OK():
		return Decision{Step: StepDone}
	case last.Final, last.Attempt > p.Retries:
		return Decision{Step: StepFailed}
	}
	return Decision{Attempt: last.Attempt + 1, Tick: last.Tick, Began: last.Began, Missed: last.Missed}
}

// Complete fills in what was decided about the result of an attempt: its number, its
// tick, and whether it is final.
func (p Plan) Complete(r multilock.Result, d Decision) multilock.Result {
	r.Attempt, r.Tick, r.Began, r.Missed, r.Every = d.Attempt, d.Tick, d.Began, d.Missed, p.Every.String()
	r.Final = r.OK() || d.Attempt > p.Retries
	return r
}

// Check finds what cannot be. The error is a *multilock.InvalidError.
func (p Plan) Check() error {
	if p.Retries < 0 {
		return &source.InvalidError{What: "retries", Got: strconv.Itoa(p.Retries), Why: "must not be negative"}
	}
	return p.Every.check()
}
