package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/multilock/go/cmd/multilock/internal/runner"
	"github.com/multilock/go/cmd/multilock/job"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
)

// consult asks, under the lock, whether the job is to be run.
func (r *jobRun) consult(ctx context.Context) (run bool, err error) {
	if r.plan == nil {
		return true, nil
	}
	last, err := r.lock.Outcome(ctx)
	found := &last
	if errors.Is(err, multilock.ErrNoResult) {
		found, err = nil, nil
	}
	if err != nil {
		return false, err
	}
	now, err := r.plan.Now(ctx, r.src.locks)
	if err != nil {
		return false, err
	}
	d := r.plan.Next(now, found)
	if d.Step != lockgroup.Run {
		return false, r.opt.skip(r.env, d.Step, last)
	}
	r.decided = d
	r.warn(now, last)
	return true, nil
}

// attempts runs the command, and again if its result is a failure that the plan
// allows to be repeated.
func (r *jobRun) attempts(ctx context.Context) (last *job.Result, err error) {
	for {
		result, err := r.work(ctx)
		if errors.As(err, new(*runner.NotedError)) {
			return last, fmt.Errorf("attempt %d was not started, and is left to the next run: %w", r.decided.Attempt, err)
		}
		if r.plan == nil || result == nil {
			return result, err
		}
		last = result
		recorded, failed := r.record(ctx, *result, err)
		if failed != nil {
			return result, errors.Join(err, failed)
		}
		if recorded == nil || errors.As(err, new(*job.LingeringError)) {
			return result, err
		}
		d := r.plan.Again(*recorded)
		if d.Step != lockgroup.Run {
			return result, err
		}
		r.decided = d
		if !r.opt.quiet {
			r.env.say("job %q failed (%s); trying again, attempt %d of %d", r.opt.name, exitWords(*recorded), d.Attempt, r.plan.Retries+1)
		}
	}
}

// record commits how an attempt ended. Nothing is recorded, and the result is nil,
// if the attempt was not the job's own failure: it runs again then.
func (r *jobRun) record(ctx context.Context, ended job.Result, cause error) (*multilock.Result, error) {
	if errors.Is(cause, multilock.ErrLost) {
		return nil, nil // it says so itself, and that is the exit code
	}
	if ended.Code != 0 && r.told {
		r.env.say("job %q was told to end; nothing is recorded, so it will run again", r.opt.name)
		return nil, nil
	}
	result := r.plan.Complete(r.resultOf(ended, cause), r.decided)
	if err := r.lock.Commit(ctx, result); err != nil {
		return nil, r.notRecorded(result, err)
	}
	r.committed = true
	r.note(ctx, multilock.Committed, &ended, cause)
	return &result, nil
}

func (r *jobRun) resultOf(ended job.Result, cause error) multilock.Result {
	record := r.lock.Record()
	result := multilock.Result{
		Name: record.Name, Token: record.Token, By: record.Holder.Identity, User: r.opt.user, Command: commandLine(r.opt.command),
		Exit: ended.Code, Start: ended.Started, Duration: ended.Elapsed,
	}
	if ended.Signal != 0 {
		result.Signal = ended.Signal.String()
	}
	if cause != nil {
		result.Why = cause.Error()
	}
	return result
}

func (r *jobRun) notRecorded(result multilock.Result, err error) error {
	how := exitWords(result)
	switch {
	case errors.Is(err, multilock.ErrUnsure):
		return fmt.Errorf("job %q ended (%s), and whether that was recorded cannot be told; if it was not, the job will run again: %w", result.Name, how, err)
	case errors.Is(err, multilock.ErrLost):
		return fmt.Errorf("job %q ended (%s), but its result is not recorded: %w", result.Name, how, err)
	}
	return fmt.Errorf("job %q ended (%s), but its result could not be recorded, so it will run again: %w", result.Name, how, err)
}
