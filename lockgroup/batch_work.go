package lockgroup

import (
	"context"
	"errors"
	"time"

	"github.com/multilock/go/multilock"
)

// ExitError is an error of a job's work that says how a command ended. With a Code of 0
// it has succeeded, and the Output is all that there is to say.
type ExitError struct {
	Code   int
	Signal string // that ended it, if one did
	Why    string // more about it, if there is more
	Output string // why what it printed is not kept as a whole, if it is not
}

func (e *ExitError) Error() string {
	switch {
	case e.Why != "":
		return e.Why
	case e.Code == 0:
		return "its output is not complete: " + e.Output
	}
	return "it ended with a code that is not 0"
}

// work takes jobs and runs them until nothing is left or the taking ends.
func (b *Batch) work(taking, working context.Context) {
	for {
		t, err := b.agenda.take(taking)
		if err != nil {
			return
		}
		if err := b.try(taking, working, t); err != nil {
			b.stops.drain(err)
		}
	}
}

// try takes the lock of a job, and does there what is to be done. The error is one
// for which this process cannot go on.
func (b *Batch) try(taking, working context.Context, t task) error {
	acquire := multilock.TryOnce
	if t.again {
		acquire = multilock.TryAcquire // somebody holds it, who may be dead
	}
	opt := b.opt.Options
	opt.Command = b.jobs[t.job].Command
	lock, err := acquire(taking, b.src, b.jobs[t.job].Name, opt)
	if err == nil {
		err = b.under(taking, working, lock, t)
	}
	switch {
	case err == nil:
	case errors.Is(err, multilock.ErrHeld), errors.Is(err, multilock.ErrLost), errors.Is(err, multilock.ErrUnsure), errors.Is(err, ErrLingering):
		b.agenda.postpone(t)
	case taking.Err() != nil && errors.Is(err, context.Cause(taking)), working.Err() != nil && errors.Is(err, context.Cause(working)):
		b.agenda.abandon(t)
	default:
		b.agenda.abandon(t)
		return err
	}
	return nil
}

// under runs a job under its lock, as often as the plan says, and gives the lock
// back. What the release answers changes nothing: a lock that it did not free is
// free after its TTL, and whoever takes it then finds the result.
func (b *Batch) under(taking, working context.Context, lock *multilock.Lock, t task) error {
	err := b.attempts(taking, working, lock, t)
	if errors.Is(err, ErrLingering) {
		return errors.Join(err, lock.Detach())
	}
	_ = lock.Release(context.WithoutCancel(working))
	return err
}

func (b *Batch) attempts(taking, working context.Context, lock *multilock.Lock, t task) error {
	last, err := outcome(working, lock)
	if err != nil {
		return err
	}
	for ran := false; ; ran = true {
		d := b.plan.Next(time.Time{}, last)
		if d.Step != Run {
			if !ran {
				b.agenda.collided()
			}
			b.settle(t.job, *last)
			return nil
		}
		if err := context.Cause(taking); err != nil {
			return err
		}
		if last, err = b.attempt(working, lock, t.job, d); err != nil {
			return err
		}
	}
}

// attempt runs the job and records how it ended.
func (b *Batch) attempt(ctx context.Context, lock *multilock.Lock, i int, d Decision) (*multilock.Result, error) {
	job, start := &b.jobs[i], time.Now()
	failure, err := during(ctx, lock, func(ctx context.Context) error {
		return job.Work(ctx, Attempt{Name: job.Name, Seq: i + 1, Number: d.Attempt, Lock: lock})
	})
	switch {
	case errors.Is(failure, ErrLingering), errors.Is(failure, ErrNotRun):
		return nil, failure
	case err != nil:
		return nil, err
	}
	r := resultOf(lock.Record(), failure)
	var exit *ExitError
	if errors.As(failure, &exit) {
		r.Exit, r.Signal, r.Why, r.Output = exit.Code, exit.Signal, exit.Why, exit.Output
	}
	r.Start, r.Duration = start, time.Since(start)
	r = b.plan.Complete(r, d)
	if err := lock.Commit(context.WithoutCancel(ctx), r); err != nil {
		return nil, err
	}
	b.tell(r)
	return &r, nil
}

// during runs work while the lock is held. An error after its context ended is an
// interruption.
func during(ctx context.Context, lock *multilock.Lock, work func(context.Context) error) (failure, interrupted error) {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(lock.Context(), func() { cancel(context.Cause(lock.Context())) })
	defer stop()
	failure = work(inner)
	if failure != nil && inner.Err() != nil {
		return failure, context.Cause(inner)
	}
	return failure, nil
}

// tell tells the others of a result.
func (b *Batch) tell(r multilock.Result) {
	b.mu.Lock()
	b.ran++
	b.mu.Unlock()
	exit := r.Exit
	b.news.add(multilock.Event{
		Time: time.Now(), What: multilock.Committed, Name: r.Name, Token: r.Token, By: r.By, User: r.User, Command: r.Command,
		Why: r.Why, Output: r.Output, Held: r.Duration, Exit: &exit, Signal: r.Signal, Attempt: r.Attempt,
	}, b.agenda.idle())
}

// settle notes a result that is final for this plan.
func (b *Batch) settle(i int, r multilock.Result) {
	as := jobFailed
	if r.OK() {
		as = jobDone
	}
	if !b.agenda.settle(i, as) {
		return
	}
	switch {
	case as == jobFailed:
		b.keep(b.failures, i, r)
	case r.Output != "":
		b.keep(b.incomplete, i, r)
	}
	b.halt()
}

// maxKept bounds how many failures are kept with all that is known of them.
const maxKept = 1000

func (b *Batch) keep(in map[int]multilock.Result, i int, r multilock.Result) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(in) < maxKept {
		r.Name = b.jobs[i].Name
		in[i] = r
	}
}
