package command

import (
	"fmt"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
)

// skip reports why the job is not run.
func (o *runOptions) skip(e *Env, seen lockgroup.Outcome) error {
	last, err := *seen.Last, o.skipError(seen)
	if err == nil && !o.Quiet && !o.JSON { // --json has it
		e.Say("job %q already ran%s: %s", last.Name, forTick(last.Tick), show.Ending(last))
	}
	if o.JSON {
		result := show.ResultOf(last)
		e.SayObject(runReport{Name: o.Name, Group: o.Group, Exit: console.ExitCode(err), Error: show.Explain(err), Result: &result})
	}
	return err
}

func (o *runOptions) skipError(seen lockgroup.Outcome) error {
	last := *seen.Last
	switch seen.Step {
	case lockgroup.StepFailed:
		return o.failedBefore(last)
	case lockgroup.StepUnclear:
		return fmt.Errorf("job %q counts as run, and how it ended is not known: %w: its result: %s; to let it run again: %s",
			last.Name, multilock.ErrUnsure, last.Foreign, o.Forgetting(last.Name))
	case lockgroup.StepRun, lockgroup.StepDone:
	}
	return nil
}

// failedBefore is the error for a job that failed for good in an earlier run. It has the job's exit code.
func (o *runOptions) failedBefore(last multilock.Result) error {
	text := fmt.Sprintf("job %q has failed before, and is not run again: %s; to let it run again: %s", last.Name, show.Ending(last), o.Forgetting(last.Name))
	if last.Exit < 1 || last.Exit > 255 {
		return &console.CodedError{Code: console.ExitFailure, Text: text}
	}
	return &console.CodedError{Code: last.Exit, Text: text}
}

// lockName is the lock's name, which differs from the job's for a slot.
func (r *jobRun) lockName() string { return r.lock.Record().Name }

// reportCatchUp reports another tick that runs under the same lock.
func (r *jobRun) reportCatchUp(a lockgroup.Attempt) {
	if !r.opt.Quiet {
		r.env.Say("job %q is done%s; now%s", r.opt.Name, forTick(a.Last.Tick), forTick(a.Tick))
	}
}

// heldUntil is about when other processes can acquire a timed lock, whose TTL is its whole period,
// by this host's clock.
func (r *jobRun) heldUntil() string {
	return r.since.Add(r.lock.Record().TTL).Format(time.TimeOnly)
}

// staysHeld says how long a timed lock outlasts its release.
func (r *jobRun) staysHeld() string {
	if !r.lock.Timed() {
		return ""
	}
	return "; it stays taken until about " + r.heldUntil()
}

// warn reports problems with the last result or the cron line, even with --quiet: they will
// eventually cause a failure.
func (r *jobRun) warn() {
	if a := r.attempt; a.Disbelieved {
		r.warnings = append(r.warnings, fmt.Sprintf("the last result of job %q is for the tick of %s, later than any that --every %s can mean at %s: "+
			"it is not believed, and this run's replaces it; the server's clock was wrong then or is now, or --every was changed",
			a.Last.Name, utc(a.Last.Tick), r.plan.Every, utc(a.Now)))
	}
	if !r.attempt.Better.IsZero() {
		r.warnings = append(r.warnings, r.nearTheEdge())
	}
	for _, text := range r.warnings {
		r.env.Say("warning: %s", text)
	}
}

func (r *jobRun) nearTheEdge() string {
	tick, side := r.attempt.Tick, "after"
	if tick.After(r.attempt.Now) {
		side = "before"
	}
	return fmt.Sprintf("job %q runs %s %s its tick of %s, and so near to the middle between two ticks that one will go without a run when the line fires a little earlier or later: "+
		"if it fires once per tick, at this time, write --every %s; if more often, --every without an @",
		r.opt.Name, console.Short(r.attempt.Now.Sub(tick).Abs()), side, utc(tick), console.Quote(r.attempt.Better.String()))
}

// forTick says which tick a run was for, if any.
func forTick(tick time.Time) string {
	if tick.IsZero() {
		return ""
	}
	return " for its tick of " + utc(tick)
}

// utc formats a time of the source's clock.
func utc(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// runReport is the output of "run --json", one line on standard error: standard output belongs to the job.
type runReport struct {
	Name    string  `json:"name"`
	Group   string  `json:"group"`
	Slot    int     `json:"slot,omitempty"`
	Token   string  `json:"token"`
	Fence   uint64  `json:"fence,omitempty"`
	Waited  float64 `json:"waited_seconds"`
	Held    float64 `json:"held_seconds"`
	Ran     bool    `json:"ran"`
	JobExit *int    `json:"job_exit"`
	Exit    int     `json:"exit"`
	Error   string  `json:"error,omitempty"`
	// Attempt is set for a job whose result is recorded; Result is an earlier result, if the job
	// was not run because of it.
	Attempt int          `json:"attempt,omitempty"`
	Result  *show.Result `json:"result,omitempty"`
	// Tick and Began are from a result of --every, and Warnings are about them.
	Tick     time.Time `json:"tick,omitzero"`
	Began    time.Time `json:"began,omitzero"`
	Missed   int       `json:"missed,omitempty"`
	Warnings []string  `json:"warnings,omitempty"`
}

// printJSON prints the line of "run --json".
func (r *jobRun) printJSON(end ending) {
	report := runReport{
		Name: r.lockName(), Group: r.opt.Group, Slot: r.slot, Token: r.lock.Record().Token, Fence: r.fence,
		Waited: r.waited.Seconds(), Held: time.Since(r.since).Seconds(), Ran: end.job != nil, Exit: console.ExitCode(end.err), Error: show.Explain(end.err), Attempt: r.attempt.Attempt,
		Tick: r.attempt.Tick.UTC(), Began: r.attempt.Began.UTC(), Missed: r.attempt.Missed, Warnings: r.warnings,
	}
	if end.job != nil {
		report.JobExit = &end.job.Code
	}
	r.env.SayObject(report)
}
