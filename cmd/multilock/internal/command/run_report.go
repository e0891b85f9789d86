package command

import (
	"fmt"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
)

// skipText reports that the job is already done.
func (end ending) skipText() string {
	last := *end.skipped.Last
	return fmt.Sprintf("job %q already ran%s: %s", last.Name, forTick(last.Tick), show.Ending(last))
}

// skipError returns the error if the job is not run, nil if it is already done.
func (q *request) skipError(seen lockgroup.Outcome) error {
	last := *seen.Last
	switch seen.Step {
	case lockgroup.StepFailed: // the exit code is the job's
		code := last.Exit
		if code < 1 || code > 255 {
			code = console.ExitFailure
		}
		return &console.CodedError{Code: code, Text: fmt.Sprintf("job %q failed permanently: %s; to run it again: %s", last.Name, show.Ending(last), q.Forgetting(last.Name))}
	case lockgroup.StepUnclear:
		return fmt.Errorf("job %q counts as run, and how it ended is not known: %w: its result: %s; to run it again: %s",
			last.Name, multilock.ErrUnsure, last.Foreign, q.Forgetting(last.Name))
	case lockgroup.StepRun, lockgroup.StepDone:
	}
	return nil
}

// planWarnings are problems with the last result or the cron line.
func (f facts) planWarnings() (warnings []string) {
	if a := f.attempt; a.InFuture {
		warnings = append(warnings, fmt.Sprintf("the last result of job %q is for the tick of %s, later than any that --every %s can mean at %s: "+
			"it is ignored, and the result of this run replaces it; the server's clock was wrong then or is now, or --every was changed",
			a.Last.Name, utc(a.Last.Tick), f.plan.Every, utc(a.Now)))
	}
	if !f.attempt.Better.IsZero() {
		warnings = append(warnings, f.nearTheEdge())
	}
	return warnings
}

func (f facts) nearTheEdge() string {
	tick, side := f.attempt.Tick, "after"
	if tick.After(f.attempt.Now) {
		side = "before"
	}
	return fmt.Sprintf("job %q runs %s %s its tick of %s, and so near to the middle between two ticks that one will go without a run when the line fires a little earlier or later: "+
		"if it fires once per tick, at this time, write --every %s; if more often, --every without an @",
		f.Name, console.Short(f.attempt.Now.Sub(tick).Abs()), side, utc(tick), console.Quote(f.attempt.Better.String()))
}

// forTick returns text about the tick of a run, "" without one.
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
	// Tick and First are from a result of --every, and Warnings are about them.
	Tick     time.Time `json:"tick,omitzero"`
	First    time.Time `json:"first_start,omitzero"`
	Missed   int       `json:"missed_ticks,omitempty"`
	Warnings []string  `json:"warnings,omitempty"`
}

// json returns the report of "run --json".
func (end ending) json() runReport {
	report := runReport{Name: end.Name, Group: end.Group, Exit: console.ExitCode(end.err), Error: show.Explain(end.err)}
	if end.skipped != nil {
		result := show.ResultOf(*end.skipped.Last)
		report.Result = &result
		return report
	}
	report.Name, report.Slot, report.Token, report.Fence = end.lockName(), end.slot, end.lock.Record().Token, end.fence
	report.Waited, report.Held, report.Ran = end.waited.Seconds(), end.heldFor.Seconds(), end.result != nil
	report.Attempt, report.Tick, report.First, report.Missed = end.attempt.Attempt, end.attempt.Tick.UTC(), end.attempt.Began.UTC(), end.attempt.Missed
	report.Warnings = end.warnings
	if end.result != nil {
		report.JobExit = &end.result.Code
	}
	return report
}
