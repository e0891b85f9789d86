package command

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/runner"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/cmd/multilock/job"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// work is one attempt. With an error nothing is recorded, and it is the last one.
func (r *jobRun) work(ctx context.Context, a lockgroup.Attempt) (multilock.Result, error) {
	if errors.As(r.why, new(*job.LingeringError)) {
		return multilock.Result{}, r.why // none may run beside what is left of the one before
	}
	r.attempt = a
	if a.First {
		r.begin(ctx)
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

func resultOf(ended job.Result, why error) multilock.Result {
	result := multilock.Result{Exit: ended.Code, Start: ended.Started, Duration: ended.Elapsed}
	if ended.Signal != 0 {
		result.Signal = ended.Signal.String()
	}
	if why != nil {
		result.Why = why.Error()
	}
	return result
}

// recorded tells the history of an attempt whose result is recorded.
func (r *jobRun) recorded(ctx context.Context, _ multilock.Result) {
	r.committed = true
	r.note(ctx, source.EventCommitted, r.result, r.why)
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

// runCommand starts the command and sees it to its end. The result is nil if it was not
// started.
func (r *jobRun) runCommand(ctx context.Context) (*job.Result, error) {
	if err := context.Cause(r.signals.Until(ctx)); err != nil {
		return nil, err
	}
	r.env.Await()
	if err := r.lock.Verify(ctx); err != nil {
		return nil, err
	}
	running, err := runner.Start(ctx, r.spec())
	if err != nil {
		return nil, err
	}
	r.started = true
	err = running.Wait(ctx)
	r.told = running.Told()
	result := running.Result()
	return &result, err
}

func (r *jobRun) spec() runner.Spec {
	signals := r.signals.ForJob() // before the start, lest one gets lost in between
	told := r.signals.Until(context.Background()).Done()
	mark := process.JobMark(r.lock.Record().Token)
	return runner.Spec{
		Job: job.Spec{
			Args: r.opt.command, Env: append(place.JobEnviron(r.env.Environ()), r.variables(mark)...), Mark: mark,
			Stdin: r.env.Stdin, Stdout: r.env.Stdout, Stderr: r.env.Stderr, JobControl: true, Self: r.src.Self,
		},
		Lock: r.lock, Name: r.opt.Name, Again: r.attempt.Attempt > 1, Grace: r.grace, OnLost: runner.OnLost(r.opt.onLost),
		Limit: r.opt.maxRuntime.Value, OverLimit: errRuntimeOut, Ending: r.ending, Say: r.env.Say,
		Signals: signals, Told: runner.Told{Any: told, Job: told}, Recorded: r.plan != nil,
	}
}

// ending tells that the job is being ended, and why.
func (r *jobRun) ending(why error) {
	switch {
	case errors.Is(why, errRuntimeOut):
		r.env.Say("the job has run for %s, the limit of --max-runtime; ending it", r.opt.maxRuntime.Value)
	case errors.Is(why, multilock.ErrOver) && !errors.Is(why, multilock.ErrLost):
		r.env.Say("the time of lock %q is over in %s; ending the job", r.lockName(), console.Short(r.lock.Grace()))
	default:
		r.env.Say("%v; ending the job", why)
	}
}

func (r *jobRun) variables(mark string) []string {
	vars := []string{mark, "MULTILOCK_NAME=" + r.opt.Name, "MULTILOCK_GROUP=" + r.opt.Group}
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
	return append(vars, r.timeVariables()...)
}
