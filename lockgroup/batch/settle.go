package batch

import (
	"slices"
	"time"

	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// ours drops from a unit's record the jobs that are not in this list: the record may come from an
// earlier list of the group.
func (q *schedule) ours(u *unit, r multilock.Result) multilock.Result {
	chunk := *r.Chunk
	if chunk.From != u.From || chunk.To != u.To {
		chunk = source.Chunk{From: u.From, To: u.To, Fence: chunk.Fence}
	}
	chunk.Jobs = slices.DeleteFunc(slices.Clone(chunk.Jobs), func(j source.ChunkJob) bool {
		return j.Number < u.From || j.Number > u.To || j.Name != q.jobs[j.Number-1].Name
	})
	chunk.Count()
	r.Chunk = &chunk
	return r
}

// merge merges the recorded result of a unit. The caller holds the mutex.
func (q *schedule) merge(i int, r multilock.Result) {
	switch u := &q.units[i]; {
	case r.Chunk != nil && r.Chunk.Revision > q.known:
		q.wanted = max(q.wanted, r.Chunk.Revision)
		return
	case r.Chunk == nil && r.Foreign != "":
		for job := u.From - 1; job < u.To; job++ {
			q.learned(job, r)
		}
	case r.Chunk != nil:
		r = q.ours(u, r)
		q.mergeChunk(u, r)
	}
	u := &q.units[i] // merging may have added units
	if q.openIn(u) == 0 || r.Chunk != nil && r.Chunk.Final() {
		q.set(i, unitFinal)
	}
}

// chunkDone settles a chunk whose jobs have all succeeded. The caller holds the mutex.
func (q *schedule) chunkDone(root int) {
	for job := q.units[root].From - 1; job < q.units[root].To; job++ {
		q.settle(job, multilock.Result{})
	}
	q.finish(root)
}

func (q *schedule) mergeChunk(u *unit, r multilock.Result) {
	of, root, fence := u.Range, u.root, r.Chunk.Fence // adding parts may move u
	for _, job := range r.Chunk.Jobs {
		q.learned(job.Number-1, job.Result(r))
	}
	for _, part := range r.Chunk.Returned {
		q.add(unit{Range: part, of: of, root: root, fence: fence})
	}
}

// learned settles a job if its recorded result is final for this plan.
func (q *schedule) learned(job int, r multilock.Result) {
	if q.plan.Next(time.Time{}, &r).Step != lockgroup.StepRun {
		q.settle(job, r)
	}
}

// settle records a result that is final for this plan. The caller holds the mutex.
func (q *schedule) settle(job int, r multilock.Result) {
	as := jobFailed
	if r.OK() {
		as = jobDone
	}
	if !q.jobStates.settle(job, as) {
		return
	}
	q.work.Ended(job, r.Duration)
	if q.stages.settled(job, as) {
		q.allow(q.stages.upTo()) // another stage has begun
	}
	switch {
	case as == jobFailed:
		q.retain(q.failures, job, r)
	case r.Output != "":
		q.retain(q.incomplete, job, r)
	}
}

// maxKept limits how many failures keep their full result.
const maxKept = 1000

func (q *schedule) retain(in map[int]multilock.Result, job int, r multilock.Result) {
	if len(in) < maxKept {
		r.Name = q.jobs[job].Name
		in[job] = r
	}
}

// committed updates local state after a commit. The caller holds the mutex.
func (q *schedule) committed(h *holding, r multilock.Result, fresh []attempt, parts []unit) {
	h.last, h.recorded = r, true
	q.forget(fresh)
	for _, a := range fresh {
		q.ran++
		again := q.plan.Again(a.result)
		switch {
		case again.Step != lockgroup.StepRun:
			q.settle(a.job, a.result)
		case h.stopped == nil:
			h.waiting++
			q.retry(task{job: a.job, number: again.Attempt, holding: h})
		}
	}
	for _, part := range parts {
		q.add(part)
	}
	if r.Final {
		q.set(h.unit, unitFinal)
	}
}

// retry queues another attempt, after its pause. The caller holds the mutex.
func (q *schedule) retry(t task) {
	pause := q.plan.Pause(t.number)
	if pause == 0 {
		q.ready = append(q.ready, t)
		return
	}
	q.delayed[t] = true
	time.AfterFunc(pause, func() {
		q.change(func() {
			if q.delayed[t] { // not taken back since then
				delete(q.delayed, t)
				q.ready = append(q.ready, t)
			}
		})
	})
}

// forget subtracts recorded results from the counts of unrecorded ones.
func (q *schedule) forget(fresh []attempt) {
	for _, a := range fresh {
		q.count(a.result, -1)
	}
}

// count adds n to the counts of unrecorded final results.
func (q *schedule) count(r multilock.Result, n int) {
	switch {
	case !r.Final:
	case r.OK():
		q.ended.done += n
	default:
		q.ended.failed += n
	}
}

// unfinished returns the units of the recorded ranges that are not known to be final. Reading a unit
// may add parts, so the caller repeats this until none is left.
func (q *schedule) unfinished(recorded map[source.Range]bool) (units []int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.units {
		u := &q.units[i]
		if recorded[u.Range] && u.state != unitFinal {
			units = append(units, i)
		}
		delete(recorded, u.Range)
	}
	return units
}

// othersRecorded returns the chunks among the first n units with a recorded result that another
// process may have written and that is not known to be final.
func (q *schedule) othersRecorded(n int, recorded map[string]bool) (units []int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range n {
		if u := &q.units[i]; u.state != unitFinal && u.state != unitTaken && recorded[u.name()] {
			units = append(units, i)
		}
	}
	return units
}

// othersParts returns the parts that other processes hold, in random order. On a busy host it includes
// free parts, because any other host may have claimed them.
func (q *schedule) othersParts() (parts []int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, i := range q.parts {
		if state := q.units[i].state; state == unitElsewhere || state == unitOpen && q.throttle.busy != "" {
			parts = append(parts, i)
		}
	}
	return parts
}
