package batch

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// work takes jobs and runs them until nothing is left or the taking ends.
func (b *Batch) work(taking, working context.Context) {
	for {
		t, err := b.queue.take(taking)
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
	opt.Command = cmp.Or(b.jobs[t.job].Shown, b.jobs[t.job].Command)
	lock, err := acquire(taking, b.src, b.jobs[t.job].Name, opt)
	if err == nil {
		err = b.under(taking, working, lock, t)
	}
	switch {
	case err == nil:
	case errors.Is(err, multilock.ErrHeld), errors.Is(err, multilock.ErrLost), errors.Is(err, multilock.ErrUnsure), errors.Is(err, lockgroup.ErrLingering):
		b.queue.postpone(t)
	case taking.Err() != nil && errors.Is(err, context.Cause(taking)), working.Err() != nil && errors.Is(err, context.Cause(working)):
		b.queue.abandon(t)
	default:
		b.queue.abandon(t)
		return err
	}
	return nil
}

// under runs a job under its lock, as often as the plan says, and gives the lock
// back. What the release answers changes nothing: a lock that it did not free is
// free after its TTL, and whoever takes it then finds the result.
func (b *Batch) under(taking, working context.Context, lock *multilock.Lock, t task) error {
	err := b.attempts(taking, working, lock, t)
	if errors.Is(err, lockgroup.ErrLingering) {
		return errors.Join(err, lock.Detach())
	}
	_ = lock.Release(context.WithoutCancel(working))
	return err
}

func (b *Batch) attempts(taking, working context.Context, lock *multilock.Lock, t task) error {
	work := func(ctx context.Context, a lockgroup.Attempt) (multilock.Result, error) {
		if err := context.Cause(taking); err != nil {
			return multilock.Result{}, err
		}
		job := Attempt{Name: b.jobs[t.job].Name, Seq: t.job + 1, Number: a.Attempt, Lock: a.Lock}
		return lockgroup.WhileHeld(ctx, a.Lock, func(ctx context.Context) error { return b.jobs[t.job].Work(ctx, job) })
	}
	out, err := lockgroup.Attempts{Source: b.src, Plan: &b.plan, Work: work, Recorded: b.tell}.Run(working, lock)
	if err != nil {
		return err
	}
	if out.Ran == 0 {
		b.queue.collided()
	}
	b.settle(t.job, *out.Last)
	return nil
}

// tell tells the others of a result.
func (b *Batch) tell(_ context.Context, r multilock.Result) {
	b.mu.Lock()
	b.ran++
	b.mu.Unlock()
	b.feed.add(source.CommittedEvent(r, time.Now()), b.queue.idle())
}

// settle notes a result that is final for this plan.
func (b *Batch) settle(i int, r multilock.Result) {
	as := jobFailed
	if r.OK() {
		as = jobDone
	}
	if !b.queue.settle(i, as) {
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
