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

// What has ended is recorded together with what ends within an eighth of the time that a
// job takes: a crash loses little of the work, and a record is paid for by several jobs.
const (
	shortestWindow = 250 * time.Millisecond
	longestWindow  = 2 * time.Second
	windowShare    = 8
)

// keep records how the jobs of a holding end, until nothing of it is left to be done here,
// and gives its lock back. What the release answers changes nothing: a lock that it did
// not free is free after its TTL, and whoever takes it then finds what is recorded.
func (b *Batch) keep(h *holding) error {
	for b.awaitRecord(h) {
		if err := b.record(h); err != nil {
			b.stop(h, err)
		}
	}
	var why error
	lingering, recorded := false, false
	b.hands.change(func() { why, lingering, recorded = h.stopped, h.lingering, h.recorded })
	if lingering {
		return errors.Join(why, h.lock.Detach())
	}
	if recorded {
		b.announce(h) // under the lock: who takes a result back does that after it
	}
	_ = h.lock.Release(context.WithoutCancel(b.working))
	if recorded {
		b.announceWhole(h) // not under the lock: who does the same would take it for somebody at work
	}
	return why
}

// awaitRecord waits until something is to be recorded. It reports false when nothing is,
// or will be any more.
func (b *Batch) awaitRecord(h *holding) bool {
	lost, noMore := h.lock.Context().Done(), b.taking.Done()
	for {
		b.hands.mu.Lock()
		record, wait := h.due(b.hands.window())
		over := !record && h.running+h.waiting == 0
		changed := b.hands.changed
		b.hands.mu.Unlock()
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
			b.hands.change(func() { b.hands.takeBack(h) })
		}
		timer.Stop()
	}
}

// window is for how long a result waits for others.
func (h *hands) window() time.Duration {
	return min(max(h.jobTime.value/windowShare, shortestWindow), longestWindow)
}

// due says whether something is to be recorded now, or in how long to ask again.
func (h *holding) due(window time.Duration) (now bool, wait time.Duration) {
	switch {
	case h.inherited:
		return true, 0
	case len(h.fresh)+len(h.parts) == 0:
		return false, time.Hour // something will change
	case h.urgent, h.running+h.waiting == 0:
		return true, 0
	}
	wait = window - time.Since(h.since)
	return wait <= 0, wait
}

// stop has no more jobs of a holding begun, and forgets what is not recorded: it will not
// be, and is done again.
func (b *Batch) stop(h *holding, why error) {
	b.hands.change(func() {
		h.stopped, h.dead = cmp.Or(h.stopped, why), true
		b.hands.takeBack(h)
		b.hands.forget(h.fresh)
		h.fresh, h.parts = nil, nil
	})
	if b.ends(why) {
		b.stops.drain(why)
	}
}

// record commits what has ended, and draws the conclusions.
func (b *Batch) record(h *holding) error {
	b.hands.mu.Lock()
	fresh, parts := h.fresh, h.parts
	h.fresh, h.parts, h.urgent, h.inherited = nil, nil, false, false
	r := b.recordOf(h, fresh, parts)
	b.hands.mu.Unlock()
	if err := h.lock.Commit(context.WithoutCancel(b.working), r); err != nil {
		b.hands.change(func() { b.hands.forget(fresh) })
		if len(fresh) > 0 {
			r = fresh[len(fresh)-1].result
		}
		return &lockgroup.UnrecordedError{Result: r, Err: err}
	}
	b.hands.change(func() { b.committed(h, r, fresh, parts) })
	b.tell(h, r, len(parts) > 0 || b.opt.Halt.When != HaltNever && !r.OK())
	b.halt()
	return nil
}

// recordOf is what is to be recorded of a holding. The caller holds the mutex.
func (b *Batch) recordOf(h *holding, fresh []attempt, parts []unit) multilock.Result {
	if b.chunks == nil {
		return fresh[0].result
	}
	h.jobs = slices.Clone(h.jobs) // what was committed before may still be on its way
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
	chunk.From, chunk.To = b.hands.units[h.unit].From, b.hands.units[h.unit].To
	chunk.Count()
	r := b.signed(h, multilock.Result{Attempt: 1, Final: chunk.Final(), Start: h.begun, Duration: time.Since(h.begun), Chunk: chunk})
	if chunk.Failed > 0 {
		r.Exit, r.Why = 1, describeFailed(chunk)
	}
	return r
}

// signed is a result with whose it is.
func (b *Batch) signed(h *holding, r multilock.Result) multilock.Result {
	record := h.lock.Record()
	r.Name, r.Token, r.By = record.Name, record.Token, record.Holder.Identity
	r.User, r.Command = record.Holder.User, record.Holder.Command
	return r
}

// committed is for what has been recorded. The caller holds the mutex.
func (b *Batch) committed(h *holding, r multilock.Result, fresh []attempt, parts []unit) {
	h.last, h.recorded = r, true
	b.hands.forget(fresh)
	for _, a := range fresh {
		b.ran++
		again := b.plan.Again(a.result)
		switch {
		case again.Step != lockgroup.StepRun:
			b.settle(a.job, a.result)
		case h.stopped == nil:
			b.hands.ready = append(b.hands.ready, task{job: a.job, number: again.Attempt, holding: h})
			h.waiting++
		}
	}
	for _, part := range parts {
		b.hands.add(part)
	}
	if r.Final {
		b.hands.set(h.unit, unitFinal)
	}
}

// tell tells the others of the result of a job; of a chunk that is not over, if that is
// urgent, or was not done for long.
func (b *Batch) tell(h *holding, r multilock.Result, urgent bool) {
	if b.chunks == nil {
		b.feed.add(source.CommittedEvent(r, time.Now()), b.isIdle())
		return
	}
	if r.Final || !urgent && time.Since(h.told) < b.progressPause() {
		return
	}
	h.told = time.Now()
	b.note(b.board.tell(context.WithoutCancel(b.working), b.unit(h.unit).root))
}

// progressPause grows with the others who are told.
func (b *Batch) progressPause() time.Duration {
	b.hands.mu.Lock()
	defer b.hands.mu.Unlock()
	return max(1, time.Duration(len(b.hands.elsewhere))) * progressEvery
}

// unit is one of the units as it is now.
func (b *Batch) unit(i int) unit {
	b.hands.mu.Lock()
	defer b.hands.mu.Unlock()
	return b.hands.units[i]
}

// forget takes results out of those that have ended and are not recorded.
func (h *hands) forget(fresh []attempt) {
	for _, a := range fresh {
		h.count(a.result, -1)
	}
}

// count counts a result that is final and not recorded yet.
func (h *hands) count(r multilock.Result, n int) {
	switch {
	case !r.Final:
	case r.OK():
		h.ended.done += n
	default:
		h.ended.failed += n
	}
}
