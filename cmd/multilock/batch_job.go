package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/multilock/go/cmd/multilock/job"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
)

// batchRun runs the jobs of a list on this host.
type batchRun struct {
	env     *env
	src     *source
	opt     *batchOptions
	list    []batchLine
	environ []string
	joblog  *joblog

	terminated <-chan struct{} // closed when this process was told to end
}

func newBatchRun(e *env, src *source, o *batchOptions, list []batchLine) (*batchRun, error) {
	r := &batchRun{env: e, src: src, opt: o, list: list, environ: append(e.jobEnviron(), "MULTILOCK_GROUP="+o.group)}
	var err error
	if o.joblog != "" {
		r.joblog, err = openJoblog(o.joblog, src.self.Host)
	}
	return r, err
}

func (r *batchRun) close() error { return r.joblog.close() }

func (r *batchRun) jobs() []lockgroup.Job {
	jobs := make([]lockgroup.Job, len(r.list))
	for i, line := range r.list {
		jobs[i] = lockgroup.Job{Name: line.name, Command: line.command, Work: r.work}
	}
	return jobs
}

// work runs one command to its end.
func (r *batchRun) work(ctx context.Context, a lockgroup.Attempt) error {
	vars, err := r.variables(ctx, a)
	if err != nil {
		return err
	}
	out, err := captureTo(r.opt.logPath(r.src, a.Name), logHeader(r.src.self.Host, a))
	if err != nil {
		return errors.Join(lockgroup.ErrNotRun, err)
	}
	if a.Number > 1 {
		forgetJob(ctx, r.env, a.Lock, a.Name)
	}
	command := r.list[a.Seq-1].command
	j, err := job.Start(job.Spec{
		Args: []string{"/bin/sh", "-c", command}, Env: vars, Mark: vars[len(vars)-1],
		Stdout: out.writer, Stderr: out.writer, GuardGrace: r.opt.grace.value, Self: r.src.self,
	})
	out.started()
	if err != nil {
		return errors.Join(lockgroup.ErrNotRun, err, out.finish())
	}
	ended := r.supervise(ctx, a, j)
	if errors.Is(ended, lockgroup.ErrLingering) {
		return errors.Join(ended, out.finish())
	}
	result := j.Result()
	if err := out.finish(); err != nil {
		r.env.say("warning: the output of job %q is not kept: %v", a.Name, err)
	}
	if err := r.joblog.add(a.Seq, command, result, out.size); err != nil {
		r.env.say("warning: %v", err)
	}
	return r.unlessTold(ctx, a.Name, result, exitError(result, ended))
}

// variables is the job's environment; its token, which marks its processes, comes last.
func (r *batchRun) variables(ctx context.Context, a lockgroup.Attempt) ([]string, error) {
	vars := append(make([]string, 0, len(r.environ)+5), r.environ...)
	vars = append(vars, "MULTILOCK_NAME="+a.Name, "MULTILOCK_SEQ="+strconv.Itoa(a.Seq), "MULTILOCK_ATTEMPT="+strconv.Itoa(a.Number))
	if r.opt.fence {
		fence, err := a.Lock.Fence(ctx)
		if err != nil {
			return nil, errors.Join(lockgroup.ErrNotRun, err)
		}
		vars = append(vars, "MULTILOCK_FENCE="+strconv.FormatUint(fence, 10))
	}
	return append(vars, "MULTILOCK_TOKEN="+a.Lock.Record().Token), nil
}

// supervise waits for the command's end, and brings it about when the time is over
// or the context ends. The error is nil if it ended by itself.
func (r *batchRun) supervise(ctx context.Context, a lockgroup.Attempt, j *job.Job) error {
	defer startJobMark(ctx, r.env, a.Lock, j, a.Name).stop()
	var over <-chan time.Time
	if r.opt.timeout.set {
		timer := time.NewTimer(r.opt.timeout.value)
		defer timer.Stop()
		over = timer.C
	}
	for {
		select {
		case <-j.Done():
			return nil
		case <-over:
			return r.end(ctx, a, j, errTimeout)
		case <-ctx.Done():
			return r.end(ctx, a, j, context.Cause(ctx))
		}
	}
}

var errTimeout = errors.New("it ran for longer than --timeout")

// end ends the command with all its processes: before others can have the lock, if
// that was lost. A fifth of the TTL is left then.
func (r *batchRun) end(ctx context.Context, a lockgroup.Attempt, j *job.Job, cause error) error {
	grace := r.opt.grace.value
	if errors.Is(cause, multilock.ErrLost) {
		r.env.say("%v; ending the job", cause)
		grace = min(grace, a.Lock.Record().TTL/5*3/4)
	}
	if err := j.Stop(context.WithoutCancel(ctx), grace); err != nil {
		return errors.Join(lockgroup.ErrLingering, cause, err)
	}
	return cause
}

// exitError is what the batch is told of an attempt.
func exitError(result job.Result, ended error) error {
	switch {
	case errors.Is(ended, errTimeout):
		return &lockgroup.ExitError{Code: exitTimeLimit, Why: ended.Error()}
	case ended != nil:
		return ended
	case result.Code == 0:
		return nil
	}
	exit := &lockgroup.ExitError{Code: result.Code}
	if result.Signal != 0 {
		exit.Signal = result.Signal.String()
	}
	return exit
}

// logHeader separates the attempts in a job's log.
func logHeader(host string, a lockgroup.Attempt) string {
	return fmt.Sprintf("=== attempt %d on %s at %s\n", a.Number, host, time.Now().Format(time.RFC3339))
}
