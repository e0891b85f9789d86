package batch

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// A result waits up to an eighth of a job's duration for others, to share one record with them: a
// crash loses little work, and a record costs little.
const (
	shortestWindow = 250 * time.Millisecond
	longestWindow  = 2 * time.Second
	windowShare    = 8
)

// keep records how the jobs of a holding end until none is left here, and releases its lock. It
// ignores errors of the release: the lock is free after its TTL, and its record is complete.
func (b *Batch) keep(h *holding) error {
	for b.awaitRecord(h) {
		if err := b.record(h); err != nil {
			b.stop(h, err)
		}
	}
	var why error
	lingering, recorded := false, false
	b.localQueue.change(func() { why, lingering, recorded = h.stopped, h.lingering, h.recorded })
	if lingering {
		return errors.Join(why, h.lock.Detach())
	}
	if recorded {
		b.announce(h) // under the lock, so that no process can forget the result first
	}
	_ = h.lock.Release(context.WithoutCancel(b.working))
	if recorded {
		b.announceComplete(h) // without the lock, which others would take for work in progress
	}
	return why
}

// awaitRecord waits until there is something to record. It returns false if there never will be.
func (b *Batch) awaitRecord(h *holding) bool {
	lost, noMore := h.lock.Context().Done(), b.taking.Done()
	for {
		b.localQueue.mu.Lock()
		record, wait := h.due(b.localQueue.window())
		over := !record && h.running+h.waiting == 0
		changed := b.localQueue.changed
		b.localQueue.mu.Unlock()
		if record || over {
			return record
		}
		timer := time.NewTimer(wait)
		select {
		case <-changed:
		case <-timer.C:
		case <-lost:
			lost = nil
			b.stop(h, context.Cause(h.lock.Context()))
		case <-noMore:
			noMore = nil
			b.localQueue.change(func() { b.localQueue.takeBack(h) })
		}
		timer.Stop()
	}
}

// window returns how long a result waits for others.
func (q *localQueue) window() time.Duration {
	return min(max(q.jobTime.value/windowShare, shortestWindow), longestWindow)
}

// due reports whether to record now, or else when to ask again.
func (h *holding) due(window time.Duration) (now bool, wait time.Duration) {
	switch {
	case h.inherited:
		return true, 0
	case len(h.fresh)+len(h.parts) == 0:
		return false, time.Hour // a change will wake the caller
	case h.urgent, h.running+h.waiting == 0:
		return true, 0
	}
	wait = window - time.Since(h.since)
	return wait <= 0, wait
}

// stop begins no more jobs of a holding, and drops results that are not recorded: these jobs run
// again.
func (b *Batch) stop(h *holding, why error) {
	b.localQueue.change(func() {
		h.stopped, h.dead = cmp.Or(h.stopped, why), true
		b.localQueue.takeBack(h)
		b.localQueue.forget(h.fresh)
		h.fresh, h.parts = nil, nil
	})
	if b.ends(why) {
		b.stops.drain(why)
	}
}

// record commits the ended attempts and updates local state.
func (b *Batch) record(h *holding) error {
	b.localQueue.mu.Lock()
	fresh, parts := h.fresh, h.parts
	h.fresh, h.parts, h.urgent, h.inherited = nil, nil, false, false
	r := b.recordOf(h, fresh, parts)
	b.localQueue.mu.Unlock()
	if err := h.lock.Commit(context.WithoutCancel(b.working), r); err != nil {
		b.localQueue.change(func() { b.localQueue.forget(fresh) })
		if len(fresh) > 0 {
			r = fresh[len(fresh)-1].result
		}
		return &lockgroup.UnrecordedError{Result: r, Err: err}
	}
	b.localQueue.change(func() { b.committed(h, r, fresh, parts) })
	b.reportResult(h, r, len(parts) > 0 || b.opt.Halt.When != HaltNever && !r.OK())
	b.halt()
	return nil
}

// recordOf returns the record to commit. The caller holds the mutex.
func (b *Batch) recordOf(h *holding, fresh []attempt, parts []unit) multilock.Result {
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
	chunk := &source.Chunk{Returned: slices.Clone(h.returned), Fence: h.fence, Label: b.opt.Label, Jobs: h.jobs}
	chunk.From, chunk.To = b.localQueue.units[h.unit].From, b.localQueue.units[h.unit].To
	chunk.Count()
	r := b.signed(h, multilock.Result{Attempt: 1, Final: chunk.Final(), Start: h.begun, Duration: time.Since(h.begun), Chunk: chunk})
	if chunk.Failed > 0 {
		r.Exit, r.Why = 1, describeFailed(chunk)
	}
	return r
}

// signed adds the holder's identity to a result.
func (b *Batch) signed(h *holding, r multilock.Result) multilock.Result {
	record := h.lock.Record()
	r.Name, r.Token, r.By = record.Name, record.Token, record.Holder.Identity
	r.User, r.Command = record.Holder.User, record.Holder.Command
	return r
}

// committed updates local state after a commit. The caller holds the mutex.
func (b *Batch) committed(h *holding, r multilock.Result, fresh []attempt, parts []unit) {
	h.last, h.recorded = r, true
	b.localQueue.forget(fresh)
	for _, a := range fresh {
		b.ran++
		again := b.plan.Again(a.result)
		switch {
		case again.Step != lockgroup.StepRun:
			b.settle(a.job, a.result)
		case h.stopped == nil:
			b.localQueue.ready = append(b.localQueue.ready, task{job: a.job, number: again.Attempt, holding: h})
			h.waiting++
		}
	}
	for _, part := range parts {
		b.localQueue.add(part)
	}
	if r.Final {
		b.localQueue.set(h.unit, unitFinal)
	}
}

// reportResult informs other processes of a job's result; of an unfinished chunk only if that is
// urgent or due.
func (b *Batch) reportResult(h *holding, r multilock.Result, urgent bool) {
	if r.Final || !urgent && time.Since(h.reported) < b.progressPause() {
		return
	}
	h.reported = time.Now()
	b.note(b.progressMap.markChanged(context.WithoutCancel(b.working), b.unit(h.unit).root))
}

// progressPause grows with the number of hosts that would read.
func (b *Batch) progressPause() time.Duration {
	b.localQueue.mu.Lock()
	defer b.localQueue.mu.Unlock()
	return max(1, time.Duration(len(b.localQueue.elsewhere))) * progressEvery
}

// unit returns a copy of a unit.
func (b *Batch) unit(i int) unit {
	b.localQueue.mu.Lock()
	defer b.localQueue.mu.Unlock()
	return b.localQueue.units[i]
}

// forget removes results from the counts of unrecorded ones.
func (q *localQueue) forget(fresh []attempt) {
	for _, a := range fresh {
		q.count(a.result, -1)
	}
}

// count counts a final result that is not recorded yet.
func (q *localQueue) count(r multilock.Result, n int) {
	switch {
	case !r.Final:
	case r.OK():
		q.ended.done += n
	default:
		q.ended.failed += n
	}
}
