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
	begun     bool            // there was an attempt
	result    *job.Result     // of the command, nil if it was not started
	why       error           // it was not, or was ended
	committed bool            // the result of an attempt is recorded
	started   bool            // the command was
	told      bool            // it was told to end, as we were
	warnings  []string        // about the plan
	events    *eventLog       // for the history
	printed   *kept           // what the command has printed
	overrun   *overrunWatch   // nil without a limit
	skipped   bool            // nothing was left to be done
	next      <-chan struct{} // closed by a signal to end that comes after the command's end
}

// run runs the command as often as is left to be done, keeps the lock as long as it has
// to, and releases it.
func (r *jobRun) run(ctx context.Context) error {
	r.since, r.grace, r.next = time.Now(), r.graceInTime(), r.signals.Next()
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
		r.holdOn(ctx)
	}
	return r.finish(ctx, r.result, r.why)
}

// work is one attempt. With an error nothing is recorded, and it is the last one.
func (r *jobRun) work(ctx context.Context, a lockgroup.Attempt) (multilock.Result, error) {
	if errors.As(r.why, new(*job.LingeringError)) {
		return multilock.Result{}, r.why // none may run beside what is left of the one before
	}
	r.attempt = a
	if a.First {
		if r.why = r.begin(ctx); r.why != nil {
			return multilock.Result{}, r.why
		}
		r.overrun = r.watchOverrun()
	} else if a.Attempt == 1 {
		r.tellCatchUp(a)
	} else if !r.opt.Quiet {
		r.env.Say("job %q failed (%s); trying again, attempt %d of %d", r.opt.Name, show.ExitWords(*a.Last), a.Attempt, r.plan.Retries+1)
	}
	last := r.result
	r.result, r.why = r.runCommand(ctx)
	switch {
	case errors.As(r.why, new(*runner.NotedError)):
		r.result, r.why = last, fmt.Errorf("attempt %d was not started, and is left to the next run: %w", a.Attempt, r.why)
		return multilock.Result{}, r.why
	case r.result == nil, errors.Is(r.why, multilock.ErrLost): // it says so itself, and that is the exit code
		return multilock.Result{}, r.why
	case r.plan != nil && r.result.Code != 0 && r.told:
		r.env.Say("job %q was told to end; nothing is recorded, so it will run again", r.opt.Name)
		return multilock.Result{}, lockgroup.ErrNotRun
	}
	return resultOf(*r.result, r.why), nil
}

// begin is for the first attempt. A job without the number that it is promised may do
// what a number would have kept it from: it is not started.
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

// fenceOf is the lock's fencing number, 0 if its source has none.
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

// runCommand starts the command and sees it to its end. The result is nil if it was not
// started.
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
		_ = out.finish() // nothing came
		return nil, err
	}
	if !r.started {
		r.opt.pingStart(context.WithoutCancel(ctx))
	}
	r.started = true
	err = running.Wait(ctx)
	r.told, r.next = running.Told(), r.signals.Next()
	result := running.Result()
	r.printed.finish(out, keepPatience)
	return &result, err
}

// confirmed says whether the lock's last sign of life, or the acquisition, is so young that
// it needs no other one before the job: half a heartbeat, by a clock that counts suspend.
func (r *jobRun) confirmed() bool {
	claim := r.lock.Record().Claim
	return !r.lock.Timed() && claim.Tenure()-r.lock.Remaining() < claim.Heartbeat/2
}

var errRuntimeOut = &console.CodedError{Code: console.ExitTimeLimit, Text: "the job ran for longer than --max-runtime"}

func (r *jobRun) spec(out captures) runner.Spec {
	signals := r.signals.ForJob() // before the start, lest one gets lost in between
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
		Limit: r.opt.maxRuntime.Value, OverLimit: errRuntimeOut, Ending: r.tellEnding, Say: r.env.Say,
		Signals: signals, Told: runner.Told{Any: told, Job: told}, Recorded: r.plan != nil,
	}
}

// graceInTime is the time between TERM and KILL of the job: under a lock that ends by
// time it is a part of that.
func (r *jobRun) graceInTime() time.Duration {
	if !r.lock.Timed() {
		return r.opt.grace.Value
	}
	return min(r.opt.grace.Value, r.lock.Remaining()/4)
}

// ownVariables say what this run is.
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

// timeVariables tell the job how much time it has. A lock that ends by time is over for its
// holder before others can have it, and nothing prolongs it: the job is ended within it.
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

// tellEnding says that the job is being ended, and why.
func (r *jobRun) tellEnding(why error) {
	switch {
	case errors.Is(why, errRuntimeOut):
		r.env.Say("the job has run for %s, the limit of --max-runtime; ending it", r.opt.maxRuntime.Value)
	case errors.Is(why, multilock.ErrOver) && !errors.Is(why, multilock.ErrLost):
		r.env.Say("the time of lock %q is over in %s; ending the job", r.lockName(), console.Short(r.lock.Grace()))
	default:
		r.env.Say("%v; ending the job", why)
	}
}

// resultOf is how the job ended, with the exit code of this process.
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

// recorded tells the history of an attempt whose result is recorded.
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
	recorded, before := r.recordEnd(result, err), time.Now()
	released := r.giveUp(ctx, err)
	what := endOf(errors.Join(err, released))
	ended := jobError(result)
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
	if recorded != what || released != nil {
		end := r.event(what, result, err)
		if what == source.EventReleased {
			end.Time = before // when nobody could have acquired it yet
		}
		r.events.record(end)
	}
	if r.opt.Verbose {
		r.env.Say("%s lock %q after %s%s", what, r.lockName(), console.Short(time.Since(r.since)), r.staysTaken())
	}
	return errors.Join(err, ended)
}

// jobError is nil for a job that succeeded, or did not run.
func jobError(result *job.Result) error {
	if result == nil || result.Code == 0 {
		return nil
	}
	return &console.JobError{Result: *result}
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

// waitsOn says whether the lock is to be waited for once more: it was lost, and the job
// was not started.
func (r *jobRun) waitsOn(err error) bool {
	return !r.started && r.limit.Waits() && errors.Is(err, multilock.ErrLost) && !errors.Is(err, multilock.ErrOver)
}
