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

// jobRun is a command that runs under a held lock.
type jobRun struct {
	env     *Env
	opt     *runOptions
	src     *place.Source
	lock    *multilock.Lock
	slot    int // 0 without --slots
	signals *console.Signals
	waited  time.Duration
	limit   console.WaitLimit // what is left of --wait
	since   time.Time         // when the lock was acquired
	fence   uint64
	grace   time.Duration // between TERM and KILL

	plan       *lockgroup.Plan // nil if no result is recorded
	attempt    lockgroup.Attempt
	begun      bool            // an attempt was made
	result     *job.Result     // nil if the command was not started
	why        error           // why the command was not started, or was ended
	committed  bool            // an attempt's result was recorded
	started    bool            // the command was started
	terminated bool            // the command was terminated, as we were
	warnings   []string        // about the plan
	events     *eventLog       // for the history
	printed    *capturedOutput // the command's output
	overrun    *overrunWatch   // nil without a limit
	skipped    bool            // there was nothing to do
	next       <-chan struct{} // closed by a termination signal after the command's end
}

// run runs the command as often as needed, keeps the lock as long as required, and releases it.
func (r *jobRun) run(ctx context.Context) error {
	r.since, r.grace, r.next = time.Now(), r.graceWithinTTL(), r.signals.Next()
	out, err := lockgroup.Attempts{Source: r.src.Locks, Plan: r.plan, Work: r.work, Recorded: r.recorded}.Run(ctx, r.lock)
	r.overrun.stop()
	if !r.begun {
		if r.skipped = err == nil; r.skipped {
			err = r.opt.skip(r.env, out)
		}
		return errors.Join(err, r.lock.Release(ctx))
	}
	var unrecorded *lockgroup.UnrecordedError
	if errors.As(err, &unrecorded) {
		r.why = errors.Join(r.why, notRecorded(unrecorded))
	}
	if r.result != nil {
		r.holdMinimum(ctx)
	}
	return r.finish(ctx, r.result, r.why)
}

// work runs one attempt. An error means that no result is recorded, and ends the attempts.
func (r *jobRun) work(ctx context.Context, a lockgroup.Attempt) (multilock.Result, error) {
	if errors.As(r.why, new(*job.LingeringError)) {
		return multilock.Result{}, r.why // nothing may run beside lingering processes
	}
	r.attempt = a
	if a.First {
		if r.why = r.begin(ctx); r.why != nil {
			return multilock.Result{}, r.why
		}
		r.overrun = r.watchOverrun()
	} else if a.Attempt == 1 {
		r.reportCatchUp(a)
	} else if !r.opt.Quiet {
		r.env.Say("job %q failed (%s); trying again, attempt %d of %d", r.opt.Name, show.ExitWords(*a.Last), a.Attempt, r.plan.Retries+1)
	}
	last := r.result
	r.result, r.why = r.runCommand(ctx)
	switch {
	case errors.As(r.why, new(*runner.NotedError)):
		r.result, r.why = last, fmt.Errorf("attempt %d was not started, and is left to the next run: %w", a.Attempt, r.why)
		return multilock.Result{}, r.why
	case r.result == nil, errors.Is(r.why, multilock.ErrLost): // it is reported, and sets the exit code
		return multilock.Result{}, r.why
	case r.plan != nil && r.result.Code != 0 && r.terminated:
		r.env.Say("job %q was told to end; nothing is recorded, so it will run again", r.opt.Name)
		return multilock.Result{}, lockgroup.ErrNotRun
	}
	return resultOf(*r.result, r.why), nil
}

// begin prepares the first attempt. The command is not started without the fencing number that it
// is promised, because it may rely on that for protection.
func (r *jobRun) begin(ctx context.Context) (err error) {
	r.begun = true
	r.warn()
	r.fence, err = fenceOf(ctx, r.lock)
	r.events = r.newEventLog(ctx)
	r.events.begin(r.event(source.EventAcquired, nil, nil))
	if r.opt.Verbose {
		r.env.Say("took lock %q after %s", r.lockName(), console.Short(r.waited))
	}
	if err == nil {
		err = r.printed.open(r.env, r.opt.keeping, logOf{r.lock.Record().Name, r.src.Self.Host, r.since})
	}
	return err
}

// fenceOf returns the lock's fencing number, 0 if the source has none.
func fenceOf(ctx context.Context, lock *multilock.Lock) (uint64, error) {
	fence, err := lock.Fence(ctx)
	switch {
	case err == nil:
		return fence, nil
	case errors.Is(err, multilock.ErrUnsupported):
		return 0, nil
	}
	return 0, fmt.Errorf("nothing was done under the lock, for want of a fencing number: %w", err)
}

// runCommand runs the command until it ends. The result is nil if it was not started.
func (r *jobRun) runCommand(ctx context.Context) (*job.Result, error) {
	if err := context.Cause(r.signals.Until(ctx)); err != nil {
		return nil, err
	}
	r.env.Await()
	if !r.confirmed() {
		if err := r.lock.Verify(ctx); err != nil {
			return nil, err
		}
	}
	out, err := r.printed.capture()
	if err != nil {
		return nil, err
	}
	running, err := runner.Start(ctx, r.spec(out))
	out.started()
	if err != nil {
		_ = out.finish() // no output yet
		return nil, err
	}
	if !r.started {
		r.opt.pingStart(context.WithoutCancel(ctx))
	}
	r.started = true
	err = running.Wait(ctx)
	r.terminated, r.next = running.Told(), r.signals.Next()
	result := running.Result()
	r.printed.finish(out, outputTimeout)
	return &result, err
}

// confirmed reports whether the last heartbeat or the acquisition is younger than half a heartbeat,
// by a clock that counts suspend. Then the job needs no verification before its start.
func (r *jobRun) confirmed() bool {
	claim := r.lock.Record().Claim
	return !r.lock.Timed() && claim.Tenure()-r.lock.Remaining() < claim.Heartbeat/2
}

var errRuntimeOut = &console.CodedError{Code: console.ExitTimeLimit, Text: "the job ran for longer than --max-runtime"}

func (r *jobRun) spec(out captures) runner.Spec {
	signals := r.signals.ForJob() // before the start, so that no signal is lost
	told := r.signals.Until(context.Background()).Done()
	vars := slices.Concat(place.JobEnviron(r.env.Environ()), r.ownVariables(), r.timeVariables(), r.lock.JobEnviron())
	stdout, stderr := r.env.Stdout, r.env.Stderr
	if len(out) > 0 {
		stdout, stderr = out.first().writer, out.last().writer
	}
	return runner.Spec{
		Job: job.Spec{
			Args: r.opt.command, Env: vars, Mark: vars[len(vars)-1],
			Stdin: r.env.Stdin, Stdout: stdout, Stderr: stderr, JobControl: true, Self: r.src.Self,
		},
		Lock: r.lock, Name: r.opt.Name, Again: r.attempt.Attempt > 1 || !r.attempt.First, Grace: r.grace, OnLost: runner.OnLost(r.opt.onLost),
		Limit: r.opt.maxRuntime.Value, OverLimit: errRuntimeOut, Ending: r.reportEnding, Say: r.env.Say,
		Signals: signals, Told: runner.Told{Any: told, Job: told}, Recorded: r.plan != nil,
	}
}

// graceWithinTTL is the time between TERM and KILL. Under a timed lock it is a part of the remaining time.
func (r *jobRun) graceWithinTTL() time.Duration {
	if !r.lock.Timed() {
		return r.opt.grace.Value
	}
	return min(r.opt.grace.Value, r.lock.Remaining()/4)
}

// ownVariables describe this run.
func (r *jobRun) ownVariables() []string {
	vars := []string{"MULTILOCK_NAME=" + r.opt.Name, "MULTILOCK_GROUP=" + r.opt.Group}
	if r.slot > 0 {
		vars = append(vars, "MULTILOCK_SLOT="+strconv.Itoa(r.slot))
	}
	if r.attempt.Attempt > 0 {
		vars = append(vars, "MULTILOCK_ATTEMPT="+strconv.Itoa(r.attempt.Attempt))
	}
	if tick := r.attempt.Tick; !tick.IsZero() {
		vars = append(vars, "MULTILOCK_TICK="+tick.Format(time.RFC3339))
	}
	if r.fence > 0 {
		vars = append(vars, "MULTILOCK_FENCE="+strconv.FormatUint(r.fence, 10))
	}
	return vars
}

// timeVariables tell the job its remaining time. A timed lock cannot be extended, and ends for its
// holder before others can acquire it.
func (r *jobRun) timeVariables() []string {
	if !r.lock.Timed() {
		return nil
	}
	left := r.lock.Remaining() - r.grace
	return []string{
		"MULTILOCK_UNTIL=" + strconv.FormatInt(time.Now().Add(left).Unix(), 10),
		"MULTILOCK_REMAINING=" + strconv.FormatInt(int64(left/time.Second), 10),
	}
}

// reportEnding reports that the job is being ended, and why.
func (r *jobRun) reportEnding(why error) {
	switch {
	case errors.Is(why, errRuntimeOut):
		r.env.Say("the job has run for %s, the limit of --max-runtime; ending it", r.opt.maxRuntime.Value)
	case errors.Is(why, multilock.ErrOver) && !errors.Is(why, multilock.ErrLost):
		r.env.Say("the time of lock %q is over in %s; ending the job", r.lockName(), console.Short(r.lock.Grace()))
	default:
		r.env.Say("%v; ending the job", why)
	}
}

// resultOf makes a result with the exit code of this process.
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

// recorded adds an attempt with a recorded result to the history.
func (r *jobRun) recorded(context.Context, multilock.Result) {
	r.committed = true
	r.events.record(r.event(source.EventCommitted, r.result, r.why))
}

func notRecorded(e *lockgroup.UnrecordedError) error {
	how := show.ExitWords(e.Result)
	switch {
	case errors.Is(e, multilock.ErrUnsure):
		return fmt.Errorf("job %q ended (%s), and whether that was recorded cannot be told; if it was not, the job will run again: %w", e.Result.Name, how, e.Err)
	case errors.Is(e, multilock.ErrLost):
		return fmt.Errorf("job %q ended (%s), but its result is not recorded: %w", e.Result.Name, how, e.Err)
	}
	return fmt.Errorf("job %q ended (%s), but its result could not be recorded, so it will run again: %w", e.Result.Name, how, e.Err)
}

// holdMinimum keeps the lock for the rest of --min-hold.
func (r *jobRun) holdMinimum(ctx context.Context) {
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

// finish releases the lock and reports the end of the run.
func (r *jobRun) finish(ctx context.Context, result *job.Result, err error) error {
	recorded, before := r.recordEnd(result, err), time.Now()
	released := r.releaseOrDetach(ctx, err)
	what := endOf(errors.Join(err, released))
	ended := jobError(result)
	switch {
	case errors.Is(err, multilock.ErrLost), errors.Is(err, multilock.ErrOver):
		released = nil // already reported
	case r.committed && errors.Is(released, multilock.ErrLost):
		r.env.Say("warning: %v; the job's result was recorded before", released)
		released = nil
	case errors.Is(released, multilock.ErrUnsure):
		r.env.Say("warning: the release was not confirmed; the lock is free in %s at the latest: %v", r.lock.Record().TTL, released)
		released = nil // the job is done, and its exit code says how
	}
	err = errors.Join(err, released)
	if recorded != what || released != nil {
		end := r.event(what, result, err)
		if what == source.EventReleased {
			end.Time = before // before any other process could acquire it
		}
		r.events.record(end)
	}
	if r.opt.Verbose {
		r.env.Say("%s lock %q after %s%s", what, r.lockName(), console.Short(time.Since(r.since)), r.staysHeld())
	}
	return errors.Join(err, ended)
}

// jobError returns nil for a job that succeeded or did not run.
func jobError(result *job.Result) error {
	if result == nil || result.Code == 0 {
		return nil
	}
	return &console.JobError{Result: *result}
}

// releaseOrDetach releases the lock, unless processes of the job survived SIGKILL. Then the lock stays held
// for its TTL, and on this host until they end.
func (r *jobRun) releaseOrDetach(ctx context.Context, err error) error {
	if !errors.As(err, new(*job.LingeringError)) {
		return r.lock.Release(ctx)
	}
	held := r.lock.Record()
	if r.lock.Timed() {
		r.env.Say("some of the job's processes live on, and from about %s on somebody else can have lock %q beside them", r.heldUntil(), r.lockName())
		return r.lock.Detach()
	}
	r.env.Say("lock %q stays held: on this host as long as one of the job's processes lives, on others for %s; to free it now: %s",
		r.lockName(), held.TTL, r.opt.Clearing(r.lockName(), held.Token))
	return r.lock.Detach()
}

// waitsAgain reports whether to wait for the lock again: it was lost before the job was started.
func (r *jobRun) waitsAgain(err error) bool {
	return !r.started && r.limit.Waits() && errors.Is(err, multilock.ErrLost) && !errors.Is(err, multilock.ErrOver)
}
