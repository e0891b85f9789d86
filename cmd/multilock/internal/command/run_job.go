package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/runner"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/cmd/multilock/job"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// attempts runs a command under a held lock.
type attempts struct {
	surroundings
	facts // so far
	aftermath
	grace     time.Duration // between TERM and KILL
	events    *eventLog     // for the history
	committed bool          // an attempt's result was recorded
}

// aftermath is what must be ended after the release.
type aftermath struct {
	stop    <-chan struct{} // closed by a termination signal after the command's end
	printed *capturedOutput // the command's output
	overrun *overrunWatch   // nil without a limit
}

func newAttempts(s surroundings, q *request, h held) *attempts {
	r := &attempts{surroundings: s, facts: facts{request: q, held: h, self: s.src.Self}, grace: q.job.grace.Value}
	r.stop, r.printed = s.signals.Next(), &capturedOutput{env: s.env}
	if h.lock.Timed() {
		r.grace = min(r.grace, h.lock.Remaining()/4)
	}
	return r
}

// run runs the command as often as needed, keeps the lock as long as required, and releases it.
func (r *attempts) run(ctx context.Context) ending {
	out, err := lockgroup.Attempts{Source: r.src.Locks, Plan: r.plan, Work: r.work, Recorded: r.recorded, Retry: r.pause}.Run(ctx, r.lock)
	r.overrun.stop()
	if !r.begun() {
		if err == nil {
			r.skipped, err = &out, r.skipError(out)
		}
		return r.ending(errors.Join(err, r.lock.Release(ctx)), nil)
	}
	var unrecorded *lockgroup.UnrecordedError
	if errors.As(err, &unrecorded) {
		r.why = errors.Join(r.why, notRecorded(unrecorded))
	}
	if r.result != nil {
		r.holdMinimum(ctx)
	}
	return r.ending(r.finish(ctx), r.printed.last())
}

// work runs one attempt. An error means that no result is recorded, and ends the attempts.
func (r *attempts) work(ctx context.Context, a lockgroup.Attempt) (multilock.Result, error) {
	if r.lingers() {
		return multilock.Result{}, r.why
	}
	r.attempt = a
	switch {
	case a.First:
		if r.why = r.begin(ctx); r.why != nil {
			return multilock.Result{}, r.why
		}
		r.overrun = r.watchOverrun()
	case a.Attempt == 1 && !r.Quiet:
		r.env.Say("job %q is done%s; now%s", r.Name, forTick(a.Last.Tick), forTick(a.Tick))
	}
	result, terminated, err := r.runCommand(ctx)
	if errors.As(err, new(*runner.NotedError)) { // the last result remains
		r.why = fmt.Errorf("attempt %d was not started, and is left to the next run: %w", a.Attempt, err)
		return multilock.Result{}, r.why
	}
	r.result, r.why = result, err
	switch {
	case r.result == nil, errors.Is(r.why, multilock.ErrLost): // the error is reported, and sets the exit code
		return multilock.Result{}, r.why
	case r.plan != nil && r.result.Code != 0 && terminated:
		r.env.Say("job %q was terminated; no result is recorded, so it will run again", r.Name)
		return multilock.Result{}, lockgroup.ErrNotRun
	}
	return resultOf(*r.result, r.why), nil
}

// pause waits before a retry. A signal or the loss of the lock ends both the wait and the attempt.
func (r *attempts) pause(ctx context.Context, next lockgroup.Attempt, pause time.Duration) {
	if r.lingers() {
		return // there will be no attempt
	}
	if !r.Quiet {
		when := ""
		if pause > 0 {
			when = " in " + console.Short(pause)
		}
		r.env.Say("job %q failed (%s); trying again%s, attempt %d of %d", r.Name, show.ExitWords(*next.Last), when, next.Attempt, r.plan.Retries+1)
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.lock.Context().Done():
	case <-r.signals.Until(ctx).Done():
	}
}

// lingers reports whether processes of the last attempt are still alive: then no other attempt may run.
func (r *attempts) lingers() bool { return errors.As(r.why, new(*job.LingeringError)) }

// begin prepares the first attempt. If the fencing token cannot be read, it fails, because the command may
// rely on the token.
func (r *attempts) begin(ctx context.Context) (err error) {
	r.warnings = r.planWarnings()
	for _, text := range r.warnings { // even with --quiet: they will eventually cause a failure
		r.env.Say("warning: %s", text)
	}
	r.fence, err = fenceOf(ctx, r.lock)
	r.events = r.newEventLog(ctx)
	r.events.begin(r.event(source.EventAcquired, nil))
	if r.Verbose {
		r.env.Say("took lock %q after %s", r.lockName(), console.Short(r.waited))
	}
	if err == nil {
		r.printed.captureIn(r.capture.group, r.facts, r.src)
		err = r.printed.open(r.capture, logOf{r.lockName(), r.self.Host, r.since})
		r.logPath = r.printed.path
		if r.printed.group != nil {
			r.logCommand = r.src.Place.PrintedBy(r.lockName(), r.fence)
		}
	}
	return err
}

// runCommand runs the command until it ends. The result is nil if it was not started. terminated means that a
// signal asked both this process and the command to end.
func (r *attempts) runCommand(ctx context.Context) (result *job.Result, terminated bool, err error) {
	if err := context.Cause(r.signals.Until(ctx)); err != nil {
		return nil, false, err
	}
	r.env.Await()
	if !r.confirmed() {
		if err := r.lock.Verify(ctx); err != nil {
			return nil, false, err
		}
	}
	r.printed.beginAttempt(r.attempt.Attempt)
	out, err := r.printed.capture()
	if err != nil {
		return nil, false, err
	}
	running, err := runner.Start(ctx, r.spec(out))
	out.started()
	if err != nil {
		_ = out.finish() // no output yet
		return nil, false, err
	}
	if r.attempt.First {
		r.ping.start(context.WithoutCancel(ctx))
	}
	err = running.Wait(ctx)
	terminated, r.stop = running.Terminated(), r.signals.Next()
	ended := running.Result()
	r.printed.finish(out)
	return &ended, terminated, err
}

// confirmed reports whether the last heartbeat or the acquisition is younger than half a heartbeat interval,
// by a clock that includes suspend. Then the lock need not be verified before the job starts.
func (r *attempts) confirmed() bool {
	claim := r.lock.Record().Claim
	return !r.lock.Timed() && claim.Tenure()-r.lock.Remaining() < claim.Heartbeat/2
}

var errRuntimeOut = &console.CodedError{Code: console.ExitTimeLimit, Text: "the job ran for longer than --max-runtime"}

func (r *attempts) spec(out captures) runner.Spec {
	signals := r.signals.ForJob() // before the start, so that no signal is lost
	asked := r.signals.Until(context.Background()).Done()
	vars := slices.Concat(place.JobEnviron(r.env.Environ()), r.jobVariables(), r.timeVariables(), r.lock.JobEnviron())
	stdout, stderr := r.env.Stdout, r.env.Stderr
	if len(out) > 0 {
		stdout, stderr = out.first().writer, out.last().writer
	}
	return runner.Spec{
		Job: job.Spec{
			Args: r.job.args, Env: vars, Mark: vars[len(vars)-1],
			Stdin: r.env.Stdin, Stdout: stdout, Stderr: stderr, JobControl: true, Self: r.self,
		},
		Lock: r.lock, Name: r.Name, Again: r.attempt.Attempt > 1 || !r.attempt.First, Grace: r.grace, OnLost: runner.OnLost(r.job.onLost),
		Limit: r.job.maxRuntime.Value, OverLimit: errRuntimeOut, Ending: r.reportEnding, Say: r.env.Say,
		Signals: signals, Termination: runner.Termination{Any: asked, Job: asked}, Recorded: r.plan != nil,
	}
}

// timeVariables describe the remaining time of a timed lock, which cannot be extended. For its holder it ends
// before other processes can acquire it.
func (r *attempts) timeVariables() []string {
	if !r.lock.Timed() {
		return nil
	}
	left := r.lock.Remaining() - r.grace
	return []string{
		"MULTILOCK_UNTIL=" + strconv.FormatInt(time.Now().Add(left).Unix(), 10),
		"MULTILOCK_REMAINING=" + seconds(left),
	}
}

// reportEnding reports that the job is being ended, and why.
func (r *attempts) reportEnding(why error) {
	switch {
	case errors.Is(why, errRuntimeOut):
		r.env.Say("the job has run for %s, the limit of --max-runtime; ending it", r.job.maxRuntime.Value)
	case errors.Is(why, multilock.ErrOver) && !errors.Is(why, multilock.ErrLost):
		r.env.Say("the time of lock %q is over in %s; ending the job", r.lockName(), console.Short(r.lock.Grace()))
	default:
		r.env.Say("%v; ending the job", why)
	}
}

// resultOf returns a result with the exit code of this process.
func resultOf(ended job.Result, why error) multilock.Result {
	result := multilock.Result{Exit: console.ExitCode(errors.Join(why, jobError(&ended))), Start: ended.Started, Duration: ended.Elapsed}
	if ended.Signal != 0 && result.Exit == ended.Code {
		result.Signal = ended.Signal.String()
	}
	if why != nil {
		result.Why = why.Error()
	}
	return result
}

// jobError returns nil for a job that succeeded or did not run.
func jobError(result *job.Result) error {
	if result == nil || result.Code == 0 {
		return nil
	}
	return &console.JobError{Result: *result}
}

// recorded adds an attempt with a recorded result to the history.
func (r *attempts) recorded(context.Context, multilock.Result) {
	r.committed = true
	r.events.record(r.event(source.EventCommitted, r.why))
}

func notRecorded(e *lockgroup.UnrecordedError) error {
	how := show.ExitWords(e.Result)
	switch {
	case errors.Is(e, multilock.ErrUnsure):
		return fmt.Errorf("job %q ended (%s), and it is not known whether its result was recorded; if it was not, the job will run again: %w", e.Result.Name, how, e.Err)
	case errors.Is(e, multilock.ErrLost):
		return fmt.Errorf("job %q ended (%s), but its result is not recorded: %w", e.Result.Name, how, e.Err)
	}
	return fmt.Errorf("job %q ended (%s), but its result could not be recorded, so it will run again: %w", e.Result.Name, how, e.Err)
}

// holdMinimum keeps the lock for the rest of --min-hold.
func (r *attempts) holdMinimum(ctx context.Context) {
	rest := r.job.minHold.Value - time.Since(r.since)
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

// finish releases the lock and records the end of the run. It returns the run's error.
func (r *attempts) finish(ctx context.Context) error {
	err, recorded := r.why, source.EventKind("")
	if r.events.isPending() { // so that a barrier that finds the lock free also finds the run's end
		recorded = endOf(err)
		r.events.record(r.event(recorded, err))
	}
	r.printed.endGroup(r.ending(errors.Join(err, jobError(r.result)), nil).capturedWords())
	before := time.Now()
	released := r.releaseOrDetach(ctx)
	what := endOf(errors.Join(err, released))
	switch {
	case errors.Is(err, multilock.ErrLost), errors.Is(err, multilock.ErrOver):
		released = nil // already reported
	case r.committed && errors.Is(released, multilock.ErrLost):
		r.env.Say("warning: %v; the job's result was recorded before", released)
		released = nil
	case errors.Is(released, multilock.ErrUnsure):
		r.env.Say("warning: the release was not confirmed; the lock is free in %s at the latest: %v", r.lock.Record().TTL, released)
		released = nil // the job is done, and its exit code reports its success
	}
	err = errors.Join(err, released)
	if recorded != what || released != nil {
		end := r.event(what, err)
		if what == source.EventReleased {
			end.Time = before // before any other process could acquire it
		}
		r.events.record(end)
	}
	if r.Verbose {
		r.env.Say("%s lock %q after %s%s", what, r.lockName(), console.Short(time.Since(r.since)), r.staysHeld())
	}
	return errors.Join(err, jobError(r.result))
}

// releaseOrDetach releases the lock, unless processes of the job survived SIGKILL. Then the lock stays held
// for its TTL, and on this host until they end.
func (r *attempts) releaseOrDetach(ctx context.Context) error {
	if !errors.As(r.why, new(*job.LingeringError)) {
		return r.lock.Release(ctx)
	}
	if r.lock.Timed() {
		r.env.Say("some of the job's processes are still alive; from about %s on another process can acquire lock %q beside them", r.heldUntil(), r.lockName())
	} else {
		r.env.Say("lock %q stays held: on this host as long as one of the job's processes lives, on others for %s; to free it now: %s",
			r.lockName(), r.lock.Record().TTL, r.Clearing(r.lockName(), r.lock.Record().Token))
	}
	return r.lock.Detach()
}
