package command

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/cmd/multilock/job"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

var errRuntimeOut = &console.CodedError{Code: console.ExitTimeLimit, Text: "the job ran for longer than --max-runtime"}

// jobRun is one command under a lock that is held.
type jobRun struct {
	env     *Env
	opt     *runOptions
	src     *place.Source
	lock    *multilock.Lock
	slot    int // its number, 0 if it is not one of several
	signals *console.Signals
	waited  time.Duration
	limit   console.WaitLimit // what was left of --wait
	since   time.Time         // when the lock was taken
	fence   uint64
	grace   time.Duration // between TERM and KILL

	plan      *lockgroup.Plan // nil if the result is not to be recorded
	attempt   lockgroup.Attempt
	begun     bool        // there was an attempt
	result    *job.Result // of the command, nil if it was not started
	why       error       // it was not, or was ended
	committed bool        // the result of an attempt is recorded
	started   bool        // the command was
	told      bool        // it was told to end, as we were
	warnings  []string    // about the plan
}

// run runs the command as often as is left to be done, keeps the lock as long as it has
// to, and releases it.
func (r *jobRun) run(ctx context.Context) error {
	r.since, r.grace = time.Now(), r.graceInTime()
	out, err := lockgroup.Attempts{Source: r.src.Locks, Plan: r.plan, Work: r.work, Recorded: r.recorded}.Run(ctx, r.lock)
	if !r.begun {
		if err == nil {
			err = r.opt.skip(r.env, out)
		}
		return errors.Join(err, r.lock.Release(ctx))
	}
	var unrecorded *lockgroup.UnrecordedError
	if errors.As(err, &unrecorded) {
		r.why = errors.Join(r.why, notRecorded(unrecorded))
	}
	if r.result != nil {
		r.holdOn(ctx)
	}
	return r.finish(ctx, r.result, r.why)
}

// lockName is the lock's, which is not the job's if it is one of several slots.
func (r *jobRun) lockName() string { return r.lock.Record().Name }

// begin is for the first attempt.
func (r *jobRun) begin(ctx context.Context) {
	r.begun = true
	r.warn()
	r.drawFence(ctx)
	r.note(ctx, source.EventAcquired, nil, nil)
	if r.opt.Verbose {
		r.env.Say("took lock %q after %s", r.lockName(), console.Short(r.waited))
	}
}

// drawFence gets the number for the job's environment. Without one the lock is as
// good as it is with one, so that is told and no more.
func (r *jobRun) drawFence(ctx context.Context) {
	fence, err := r.lock.Fence(ctx)
	if err != nil && !errors.Is(err, multilock.ErrUnsupported) && !errors.Is(err, multilock.ErrLost) {
		r.env.Say("warning: no MULTILOCK_FENCE for the job: %v", err)
	}
	if err == nil {
		r.fence = fence
	}
}

// waitsOn says whether the lock is to be waited for once more: it was lost, and the job
// was not started.
func (r *jobRun) waitsOn(err error) bool {
	return !r.started && r.limit.Waits() && errors.Is(err, multilock.ErrLost) && !errors.Is(err, multilock.ErrOver)
}

// holdOn keeps the lock for the rest of --min-hold.
func (r *jobRun) holdOn(ctx context.Context) {
	rest := r.opt.minHold.Value - time.Since(r.since)
	if rest <= 0 {
		return
	}
	timer := time.NewTimer(rest)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.lock.Context().Done():
	case <-r.signals.Until(ctx).Done():
	}
}

// finish releases the lock and says how all of it ended.
func (r *jobRun) finish(ctx context.Context, result *job.Result, err error) error {
	released := r.giveUp(ctx, err)
	what := source.EventReleased
	if errors.Is(err, multilock.ErrLost) || errors.Is(released, multilock.ErrLost) {
		what = source.EventLost
	}
	var ended error
	if result != nil && result.Code != 0 {
		ended = &console.JobError{Result: *result}
	}
	switch {
	case errors.Is(err, multilock.ErrLost), errors.Is(err, multilock.ErrOver):
		released = nil // told already
	case r.committed && errors.Is(released, multilock.ErrLost):
		r.env.Say("warning: %v; the job's result was recorded before", released)
		released = nil
	case errors.Is(released, multilock.ErrUnsure):
		r.env.Say("warning: the release was not confirmed; the lock is free in %s at the latest: %v", r.lock.Record().TTL, released)
		released = nil // what the job did is done, and its exit code says how
	}
	err = errors.Join(err, released)
	r.note(ctx, what, result, err)
	if r.opt.Verbose {
		r.env.Say("%s lock %q after %s%s", what, r.lockName(), console.Short(time.Since(r.since)), r.staysTaken())
	}
	if r.opt.JSON && !r.waitsOn(err) {
		r.report(result, errors.Join(err, ended))
	}
	return errors.Join(err, ended)
}

// giveUp frees the lock, unless processes of the job have survived SIGKILL: then
// the lock is left to its TTL, and on this host to the life of those processes.
func (r *jobRun) giveUp(ctx context.Context, err error) error {
	if !errors.As(err, new(*job.LingeringError)) {
		return r.lock.Release(ctx)
	}
	held := r.lock.Record()
	if r.lock.Timed() {
		r.env.Say("some of the job's processes live on, and from about %s on somebody else can have lock %q beside them", r.takenUntil(), r.lockName())
		return r.lock.Detach()
	}
	r.env.Say("lock %q stays held: on this host as long as one of the job's processes lives, on others for %s; to free it now: %s",
		r.lockName(), held.TTL, r.opt.Clearing(r.lockName(), held.Token))
	return r.lock.Detach()
}

// note writes to the history. That it cannot be written stops no job.
func (r *jobRun) note(ctx context.Context, what source.EventKind, result *job.Result, cause error) {
	event := source.Event{
		Time: time.Now(), What: what, Name: r.lockName(), Token: r.lock.Record().Token, By: r.src.Self,
		User: r.opt.User, Command: console.CommandLine(r.opt.command), Fence: r.fence, Waited: r.waited, Attempt: r.attempt.Attempt,
	}
	if what != source.EventAcquired {
		event.Held = time.Since(r.since)
	}
	if result != nil {
		event.Exit = &result.Code
		if result.Signal != 0 {
			event.Signal = result.Signal.String()
		}
	}
	if cause != nil {
		event.Why = cause.Error()
	}
	if result == nil && cause != nil { // the command never ran, and so its job is not done
		code := console.ExitCode(cause)
		event.Exit = &code
	}
	if err := r.src.Note(ctx, event); err != nil && r.opt.Verbose {
		r.env.Say("warning: %v", err)
	}
}

// runReport is what "run --json" prints, as one line on the standard error: the
// standard output is the job's.
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
	// Attempt is that of a job whose result is recorded; Result is the one that
	// was there already, if that is why the job was not run.
	Attempt int               `json:"attempt,omitempty"`
	Result  *multilock.Result `json:"result,omitempty"`
	// Tick and Began are those of the result of --every, and Warnings what is to be
	// said about them.
	Tick     time.Time `json:"tick,omitzero"`
	Began    time.Time `json:"began,omitzero"`
	Warnings []string  `json:"warnings,omitempty"`
}

func (r *jobRun) report(result *job.Result, err error) {
	report := runReport{
		Name: r.lockName(), Group: r.opt.Group, Slot: r.slot, Token: r.lock.Record().Token, Fence: r.fence,
		Waited: r.waited.Seconds(), Held: time.Since(r.since).Seconds(), Ran: result != nil, Exit: console.ExitCode(err), Error: show.Explain(err), Attempt: r.attempt.Attempt,
		Tick: r.attempt.Tick, Began: r.attempt.Began, Warnings: r.warnings,
	}
	if result != nil {
		report.JobExit = &result.Code
	}
	printReport(r.env, report)
}

// printReport prints the line of "run --json".
func printReport(e *Env, report runReport) {
	line, err := json.Marshal(report)
	if err == nil {
		e.Tell(string(console.Escaped(line)) + "\n")
	}
}
