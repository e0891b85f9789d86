package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// recorder records the results of jobs in the units that this process holds.
type recorder struct {
	*common
	exchange *exchange
}

// A result waits for other results up to an eighth of a job's duration, to share one record with them.
// This loses little work in a crash, and saves records.
const (
	shortestWindow = 250 * time.Millisecond
	longestWindow  = 2 * time.Second
	windowShare    = 8
)

// keep records the results of a holding's jobs until none is left here, and releases its lock. It
// ignores errors of the release: the lock expires, and its record is complete.
func (rec *recorder) keep(h *holding) error {
	for rec.awaitRecord(h) {
		if err := rec.record(h); err != nil {
			rec.stop(h, err)
		}
	}
	var why error
	lingering, recorded := false, false
	rec.schedule.change(func() { why, lingering, recorded = h.stopped, h.lingering, h.recorded })
	if lingering {
		return errors.Join(why, h.lock.Detach())
	}
	if recorded {
		rec.exchange.announce(h) // under the lock, so that no process can delete the result first
	}
	_ = h.lock.Release(context.WithoutCancel(rec.working))
	if recorded {
		rec.exchange.announceComplete(h) // without the lock, which other hosts would take for running work
	}
	return why
}

// awaitRecord waits until there is something to record. It returns false if there is nothing left to
// wait for.
func (rec *recorder) awaitRecord(h *holding) bool {
	lost, noMore := h.lock.Context().Done(), rec.taking.Done()
	for {
		rec.schedule.mu.Lock()
		record, wait := h.due(rec.schedule.window())
		over := !record && h.running+h.waiting == 0
		changed := rec.schedule.changed
		rec.schedule.mu.Unlock()
		if record || over {
			return record
		}
		timer := time.NewTimer(wait)
		select {
		case <-changed:
		case <-timer.C:
		case <-lost:
			lost = nil
			rec.stop(h, context.Cause(h.lock.Context()))
		case <-noMore:
			noMore = nil
			rec.schedule.change(func() { rec.schedule.takeBack(h) })
		}
		timer.Stop()
	}
}

// stop begins no more jobs of a holding, and drops unrecorded results: these jobs run again.
func (rec *recorder) stop(h *holding, why error) {
	rec.schedule.change(func() {
		h.stopped, h.dead = cmp.Or(h.stopped, why), true
		rec.schedule.takeBack(h)
		rec.schedule.forget(h.fresh)
		h.fresh, h.parts = nil, nil
	})
	if rec.ends(why) {
		rec.stops.drain(why)
	}
}

// record commits the ended attempts and updates local state.
func (rec *recorder) record(h *holding) error {
	rec.schedule.mu.Lock()
	fresh, parts := h.fresh, h.parts
	h.fresh, h.parts, h.urgent, h.inherited = nil, nil, false, false
	r := rec.recordOf(h, fresh, parts)
	rec.schedule.mu.Unlock()
	if err := h.lock.Commit(context.WithoutCancel(rec.working), r); err != nil {
		rec.schedule.change(func() { rec.schedule.forget(fresh) })
		if len(fresh) > 0 {
			r = fresh[len(fresh)-1].result
		}
		return &lockgroup.UnrecordedError{Result: r, Err: err}
	}
	rec.schedule.change(func() { rec.schedule.committed(h, r, fresh, parts) })
	rec.exchange.reportResult(h, r, len(parts) > 0 || rec.opt.Halt.When != HaltNever && !r.OK())
	rec.halt()
	return nil
}

// recordOf returns the record to commit. The caller holds the mutex.
func (rec *recorder) recordOf(h *holding, fresh []attempt, parts []unit) multilock.Result {
	h.jobs = slices.Clone(h.jobs) // an earlier commit may still read it
	for _, a := range fresh {
		line := source.ChunkJobOf(a.job+1, a.result)
		at, known := slices.BinarySearchFunc(h.jobs, line.Number, func(j source.ChunkJob, n int) int { return cmp.Compare(j.Number, n) })
		if known {
			h.jobs[at] = line.After(h.jobs[at])
		} else {
			h.jobs = slices.Insert(h.jobs, at, line)
		}
	}
	for _, part := range parts {
		h.returned = append(h.returned, part.Range)
	}
	slices.SortFunc(h.returned, func(a, b source.Range) int { return cmp.Compare(a.From, b.From) })
	chunk := &source.Chunk{Returned: slices.Clone(h.returned), Fence: h.fence, Revision: h.revision, Label: rec.opt.Label, Jobs: h.jobs}
	chunk.From, chunk.To = rec.schedule.units[h.unit].From, rec.schedule.units[h.unit].To
	chunk.Removed = rec.schedule.removedIn(chunk.From, chunk.To)
	for _, r := range h.returned {
		chunk.Removed -= rec.schedule.removedIn(r.From, r.To)
	}
	chunk.Count()
	r := h.signed(multilock.Result{Attempt: 1, Final: chunk.Final(), Start: h.begun, Duration: time.Since(h.begun), Chunk: chunk})
	if chunk.Failed > 0 {
		r.Exit, r.Why = 1, describeFailed(chunk)
	}
	return r
}

func describeFailed(c *source.Chunk) string {
	return fmt.Sprintf("%d of its %d jobs failed", c.Failed, c.To-c.From+1)
}

// complete fills in the result of an attempt.
func (rec *recorder) complete(r multilock.Result, t task, start time.Time) multilock.Result {
	if r.Start.IsZero() {
		r.Start, r.Duration = start, time.Since(start)
	}
	r = rec.schedule.plan.Complete(t.holding.signed(r), lockgroup.Decision{Attempt: t.number})
	r.Name = rec.jobs[t.job].Name
	return r
}

// ended queues a result to be recorded. The caller holds the mutex.
func (rec *recorder) ended(h *holding, a attempt) {
	if len(h.fresh)+len(h.parts) == 0 {
		h.since = time.Now()
	}
	h.fresh = append(h.fresh, a)
	h.urgent = h.urgent || rec.opt.Halt.When != HaltNever && !a.result.OK()
	rec.schedule.count(a.result, +1)
}

// stopAfter stops a unit after a job that was interrupted. The unit's other results are still recorded
// if the lock is held.
func (rec *recorder) stopAfter(h *holding, why error) {
	rec.schedule.change(func() {
		h.stopped = errors.Join(h.stopped, why)
		rec.schedule.takeBack(h)
	})
	if rec.ends(why) {
		rec.stops.drain(why)
	}
}
