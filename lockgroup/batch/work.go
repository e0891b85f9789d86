package batch

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
)

// work runs jobs until none is left or the batch takes no more.
func (b *Batch) work() {
	for {
		t, err := b.localQueue.take(b.taking)
		if err != nil {
			return
		}
		b.run(t)
	}
}

// run makes one attempt at a job.
func (b *Batch) run(t task) {
	h, start := t.holding, time.Now()
	job := Attempt{Name: b.jobs[t.job].Name, Seq: t.job + 1, Number: t.number, Lock: h.lock, Fence: h.fence}
	r, err := lockgroup.WhileHeld(b.working, h.lock, func(ctx context.Context) error { return b.jobs[t.job].Work(ctx, job) })
	if err == nil {
		r = b.complete(r, t, start)
	}
	b.localQueue.change(func() {
		b.localQueue.running--
		b.localQueue.budget.regain(t.job)
		h.running--
		b.localQueue.jobTime.add(time.Since(start))
		if err == nil && !h.dead {
			b.ended(h, attempt{t.job, r})
		}
		h.lingering = h.lingering || errors.Is(err, lockgroup.ErrLingering)
	})
	if err != nil {
		b.stopAfter(h, err)
	}
	b.halt()
}

// complete fills in the result of an attempt.
func (b *Batch) complete(r multilock.Result, t task, start time.Time) multilock.Result {
	if r.Start.IsZero() {
		r.Start, r.Duration = start, time.Since(start)
	}
	r = b.plan.Complete(b.signed(t.holding, r), lockgroup.Decision{Attempt: t.number})
	r.Name = b.jobs[t.job].Name
	return r
}

// ended queues a result to be recorded. The caller holds the mutex.
func (b *Batch) ended(h *holding, a attempt) {
	if len(h.fresh)+len(h.parts) == 0 {
		h.since = time.Now()
	}
	h.fresh = append(h.fresh, a)
	h.urgent = h.urgent || b.opt.Halt.When != HaltNever && !a.result.OK()
	b.localQueue.count(a.result, +1)
}

// stopAfter stops a unit after a job that was interrupted. Other results of the unit are still
// recorded if the lock is held.
func (b *Batch) stopAfter(h *holding, why error) {
	b.localQueue.change(func() {
		h.stopped = errors.Join(h.stopped, why)
		b.localQueue.takeBack(h)
	})
	if b.ends(why) {
		b.stops.drain(why)
	}
}

// ends reports whether an error with a unit ends the batch on this process. A lost or held lock
// does not.
func (b *Batch) ends(err error) bool {
	for _, passing := range []error{multilock.ErrHeld, multilock.ErrLost, multilock.ErrUnsure, lockgroup.ErrLingering} {
		if errors.Is(err, passing) {
			return false
		}
	}
	return !b.isEnd(err)
}

// isEnd reports whether an error is only the batch's own end.
func (b *Batch) isEnd(err error) bool {
	for _, why := range []error{context.Cause(b.taking), context.Cause(b.working)} {
		if why != nil && errors.Is(err, why) {
			return true
		}
	}
	return false
}

func shuffle(jobs []int) {
	rand.Shuffle(len(jobs), func(i, k int) { jobs[i], jobs[k] = jobs[k], jobs[i] })
}
