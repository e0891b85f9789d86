// Package runner runs a command under a lock: it sees the command to its end, and
// brings that about when the lock is lost, a limit is reached, or its caller wants it.
// It knows neither where locks live nor who asked for the command.
package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/multilock/go/cmd/multilock/job"
	"github.com/multilock/go/multilock"
)

// OnLost is what becomes of the command when its lock is lost.
type OnLost string

// What OnLost can be.
const (
	Term   OnLost = "term"   // it is asked to end, and killed before others can have the lock
	Kill   OnLost = "kill"   // it is killed
	Ignore OnLost = "ignore" // it goes on
)

// Spec is one command under a lock.
type Spec struct {
	// Job is what to run. What the lock has to do with it is filled in.
	Job job.Spec
	// Lock is held, and stays so: to release it is the caller's business. Name is that
	// of the job, for people.
	Lock *multilock.Lock
	Name string
	// Again says that another command has run under the same lock, which nobody else uses.
	Again bool
	// Marks notes the commands that run under the lock at the same time. May be nil.
	Marks *Marks
	// Grace is the time between TERM and KILL.
	Grace  time.Duration
	OnLost OnLost
	// Limit is how long the command may run, 0 for as long as it likes. OverLimit is the
	// error for one that is ended because of that.
	Limit     time.Duration
	OverLimit error
	// Signals are passed on to the command. May be nil.
	Signals <-chan os.Signal
	// Told says when this process was told to end, Recorded that how the command ends
	// will be written down.
	Told     Told
	Recorded bool
	// Ending is told that the command is being ended, and why. May be nil.
	Ending func(why error)
	// Say tells people what does not change how the command ends.
	Say func(format string, args ...any)
}

// Run is a command that was started.
type Run struct {
	spec Spec
	job  *job.Job
	mark stopper
	told bool
}

// Start starts the command. The error is multilock.ErrOver if there is no time for it, a
// *NotedError if an earlier one is in the way, else that of job.Start.
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

// underLock is what the lock has to do with the job: all that a job, or its guard, ever
// learns of it goes through here.
func (r *Run) underLock() job.Spec {
	s := r.spec.Job
	s.GuardGrace, s.MayResume = r.spec.Grace, r.mayResume
	if r.spec.OnLost != Ignore {
		s.Allowance = r.allowance
	}
	return s
}

// allowance is for how long the job may go on if nobody hears of us any more: we may be
// stopped, and our guard ends it then.
func (r *Run) allowance() job.Allowance {
	deadline := r.spec.Lock.Deadline()
	if r.spec.Lock.Timed() {
		deadline.Until = deadline.Until.Add(-r.spec.Grace)
	}
	return job.Allowance(deadline)
}

// mayResume keeps a job stopped that was suspended together with us for so long
// that the lock is lost: others may be at work by now.
func (r *Run) mayResume() bool {
	return r.spec.OnLost == Ignore || r.spec.Lock.Remaining() > 0
}

// Wait returns when the command has ended, by itself or because it was ended; the error
// says why, and is nil if it was not. It is a *multilock.LostError, multilock.ErrOver,
// Spec.OverLimit, or the cause of ctx; a *job.LingeringError is joined to it if parts of
// the job could not be ended.
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
			return r.end(ctx, r.overError("the job was ended"), r.spec.Grace)
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

// ended is for a command that ended by itself, as far as we know. If we were stopped for so
// long that the lock is lost, our guard has ended it, or was about to: what it had no time
// for is ended here. Else what the command has left in the background is left alone,
// unless it was told to end: then nothing of it may go on, because the lock is given
// back and the job may run again.
func (r *Run) ended(ctx context.Context, why error) error {
	if why == nil && r.spec.OnLost != Ignore && r.spec.Lock.Remaining() == 0 {
		return r.end(ctx, r.spec.Lock.Verify(ctx), 0) // Verify says what was lost, and asks nobody
	}
	if r.told = r.wasTold(ctx); !r.told {
		return why
	}
	return errors.Join(why, r.stop(ctx, r.spec.Grace))
}

// Result waits for the command's end, and says how it ended.
func (r *Run) Result() job.Result { return r.job.Result() }

func (r *Run) graceAfterLoss() time.Duration {
	if r.spec.OnLost == Kill {
		return 0
	}
	return r.spec.Grace
}

// end ends the command with all its processes, and returns why, and what could not be
// ended. First it is stopped, then that is told: nothing waits for a reader.
func (r *Run) end(ctx context.Context, why error, grace time.Duration) error {
	stopped := make(chan error, 1)
	go func() { stopped <- r.stop(ctx, grace) }()
	if r.spec.Ending != nil {
		r.spec.Ending(why)
	}
	return errors.Join(why, <-stopped)
}

// stop ends all processes of the job, before others can have the lock.
func (r *Run) stop(ctx context.Context, grace time.Duration) error {
	ctx, cancel := r.untilOthers(context.WithoutCancel(ctx))
	defer cancel()
	return r.job.Stop(ctx, grace)
}

// untilOthers ends a context a little before others may have the lock, so that KILL has
// done its work by then.
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

// runDown calls others when three quarters of the time are over that is left until
// others may have the lock. It looks at that time again and again, because a timer
// does not count the time for which the machine sleeps.
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

// timeLeft is how long the command may go on before it is told to end; timed is false
// if the lock is renewed.
func (r *Run) timeLeft() (left time.Duration, timed bool) {
	return r.spec.Lock.Remaining() - r.spec.Grace, r.spec.Lock.Timed()
}

func (r *Run) overError(what string) error {
	return fmt.Errorf("lock %q: %w: %s", r.spec.Lock.Record().Name, multilock.ErrOver, what)
}

// after is a timer that there need not be.
func after(limit time.Duration, limited bool) (<-chan time.Time, func()) {
	if !limited {
		return nil, func() {}
	}
	timer := time.NewTimer(limit)
	return timer.C, func() { timer.Stop() }
}
