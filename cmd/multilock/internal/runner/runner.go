// Package runner runs a command under a lock. It waits for the command, and ends it when the lock is
// lost, a limit is reached, or the caller asks for that. It depends neither on where locks are stored
// nor on which subcommand runs it.
package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/multilock/go/cmd/multilock/job"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/process"
)

// OnLost selects what happens to the command when its lock is lost.
type OnLost string

// Values of OnLost.
const (
	Term   OnLost = "term"   // ask it to end, and kill it before another process can hold the lock
	Kill   OnLost = "kill"   // kill it
	Ignore OnLost = "ignore" // let it continue
)

// Spec is a command to run under a lock.
type Spec struct {
	// Job is what to run. Fields that depend on the lock are filled in.
	Job job.Spec
	// Lock is held; the caller releases it. Name is the name of the job, for people.
	Lock *multilock.Lock
	Name string
	// Again means that another command ran under this lock before, and that none is running now.
	Again bool
	// Marks records the commands that run under the lock at the same time. May be nil.
	Marks *Marks
	// Work is recorded with the command's process groups, if Marks is not nil.
	Work process.Work
	// Grace is the time between TERM and KILL.
	Grace  time.Duration
	OnLost OnLost
	// Limit is how long the command may run, 0 for no limit. OverLimit is the error if it runs longer.
	Limit     time.Duration
	OverLimit error
	// Signals are passed on to the command. May be nil.
	Signals <-chan os.Signal
	// Termination reports when this process was asked to end. Recorded means that the command's result will be
	// recorded.
	Termination Termination
	Recorded    bool
	// Ending, if not nil, is called when the command is being ended, with the reason.
	Ending func(why error)
	// Say prints messages that do not change the result.
	Say func(format string, args ...any)
}

// Run is a command that was started.
type Run struct {
	spec       Spec
	job        *job.Job
	mark       stopper
	terminated bool
}

// Start starts the command. The error is multilock.ErrOver if there is no time left, a *NotedError
// if the lock still records an earlier command, or an error of job.Start.
func Start(ctx context.Context, spec Spec) (*Run, error) {
	r := &Run{spec: spec}
	if left, timed := r.timeLeft(); timed && left <= 0 {
		return nil, r.overError("the job was not started")
	}
	if spec.Again && spec.Marks == nil {
		if err := forget(ctx, spec.Lock); err != nil {
			return nil, err
		}
	}
	j, err := job.Start(r.underLock())
	if err != nil {
		return nil, err
	}
	r.job, r.mark = j, startMark(ctx, spec, j.Groups)
	if spec.Signals != nil {
		go j.Forward(ctx, spec.Signals)
	}
	return r, nil
}

// underLock returns the job with the fields that depend on the lock.
func (r *Run) underLock() job.Spec {
	s := r.spec.Job
	s.GuardGrace, s.MayResume = r.spec.Grace, r.mayResume
	if r.spec.OnLost != Ignore {
		s.Allowance = r.allowance
	}
	return s
}

// allowance returns how long the job may run while this process is stopped; then the guard ends it.
func (r *Run) allowance() job.Allowance {
	deadline := r.spec.Lock.Deadline()
	if r.spec.Lock.Timed() {
		deadline.Until = deadline.Until.Add(-r.spec.Grace)
	}
	return job.Allowance(deadline)
}

// mayResume returns false for a job that was suspended with this process until the lock was lost:
// another process may hold the lock now.
func (r *Run) mayResume() bool {
	return r.spec.OnLost == Ignore || r.spec.Lock.Remaining() > 0
}

// Wait returns when the command has ended. The error is why the command was ended, nil if it ended by
// itself: a *multilock.LostError, multilock.ErrOver, Spec.OverLimit, or the cause of ctx. A
// *job.LingeringError is joined to it if some processes of the job could not be ended.
func (r *Run) Wait(ctx context.Context) error {
	defer r.mark.stop()
	limit, stopLimit := after(r.spec.Limit, r.spec.Limit > 0)
	defer stopLimit()
	over, stopOver := after(r.timeLeft())
	defer stopOver()
	lost, why := r.spec.Lock.Context().Done(), error(nil)
	for {
		select {
		case <-r.job.Done():
			return r.ended(ctx, why)
		case <-limit:
			return errors.Join(why, r.end(ctx, r.spec.OverLimit, r.spec.Grace))
		case <-over:
			return r.end(ctx, r.overError("the job was terminated"), r.spec.Grace)
		case <-lost:
			why, lost = context.Cause(r.spec.Lock.Context()), nil
			if r.spec.OnLost != Ignore {
				return r.end(ctx, why, r.graceAfterLoss())
			}
			r.spec.Say("warning: %v; the job goes on (--if-lost ignore)", why)
		case <-ctx.Done():
			return r.end(ctx, context.Cause(ctx), r.spec.Grace)
		}
	}
}

// ended handles a command that seems to have ended by itself. If this process was stopped until the
// lock was lost, the guard was ending the command, and ended ends the rest. Otherwise it leaves
// background processes alone, unless the command was asked to end: then the lock is released and the
// job may run again.
func (r *Run) ended(ctx context.Context, why error) error {
	if why == nil && r.spec.OnLost != Ignore && r.spec.Lock.Remaining() == 0 {
		return r.end(ctx, r.spec.Lock.Verify(ctx), 0) // Verify returns the loss without a request
	}
	if r.terminated = r.wasTerminated(ctx); !r.terminated {
		return why
	}
	return errors.Join(why, r.stop(ctx, r.spec.Grace))
}

// Result waits for the command's end and returns its result.
func (r *Run) Result() job.Result { return r.job.Result() }

func (r *Run) graceAfterLoss() time.Duration {
	if r.spec.OnLost == Kill {
		return 0
	}
	return r.spec.Grace
}

// end ends the command with all its processes. It returns the reason, and an error if some could not be
// ended. Spec.Ending runs at the same time, so that nothing waits for it.
func (r *Run) end(ctx context.Context, why error, grace time.Duration) error {
	stopped := make(chan error, 1)
	go func() { stopped <- r.stop(ctx, grace) }()
	if r.spec.Ending != nil {
		r.spec.Ending(why)
	}
	return errors.Join(why, <-stopped)
}

// stop ends all processes of the job, before another process can hold the lock.
func (r *Run) stop(ctx context.Context, grace time.Duration) error {
	ctx, cancel := r.untilOthers(context.WithoutCancel(ctx))
	defer cancel()
	return r.job.Stop(ctx, grace)
}

// untilOthers returns a context that ends shortly before another process can hold the lock, so that
// KILL has taken effect by then.
func (r *Run) untilOthers(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if r.spec.OnLost == Ignore {
		return ctx, cancel
	}
	lock := r.spec.Lock
	if lock.Timed() {
		go r.runDown(ctx, cancel)
	}
	stop := context.AfterFunc(lock.Context(), func() { r.runDown(ctx, cancel) })
	return ctx, func() { stop(); cancel() }
}

// runDown calls others after three quarters of the time left until another process can hold the
// lock. It checks that time repeatedly, because timers do not count time in which the machine sleeps.
func (r *Run) runDown(ctx context.Context, others func()) {
	lock := r.spec.Lock
	for last := lock.Grace() / 4; lock.Grace() > last; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(lock.Grace()-last, time.Second)):
		}
	}
	others()
}

// timeLeft returns how long the command may run before it is asked to end; timed is false if the lock
// is renewed.
func (r *Run) timeLeft() (left time.Duration, timed bool) {
	return r.spec.Lock.Remaining() - r.spec.Grace, r.spec.Lock.Timed()
}

func (r *Run) overError(what string) error {
	return fmt.Errorf("lock %q: %w: %s", r.spec.Lock.Record().Name, multilock.ErrOver, what)
}

// after returns a timer, or a nil channel without a limit.
func after(limit time.Duration, limited bool) (<-chan time.Time, func()) {
	if !limited {
		return nil, func() {}
	}
	timer := time.NewTimer(limit)
	return timer.C, func() { timer.Stop() }
}
