package batch

import (
	"fmt"
	"slices"
	"time"

	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// merge merges the recorded result of a unit into local state.
func (b *Batch) merge(i int, r multilock.Result) {
	b.localQueue.change(func() {
		switch u := &b.localQueue.units[i]; {
		case r.Chunk == nil && r.Foreign != "":
			for job := u.From - 1; job < u.To; job++ {
				b.learned(job, r)
			}
		case r.Chunk != nil:
			r = b.ours(u, r)
			b.mergeChunk(u, r)
		}
		u := &b.localQueue.units[i] // merging may have added units
		if b.localQueue.openIn(u) == 0 || r.Chunk != nil && r.Chunk.Final() {
			b.localQueue.set(i, unitFinal)
		}
	})
	b.halt()
}

// ours drops from a unit's record the jobs that are not of this list: the record may be of an
// earlier list of the group.
func (b *Batch) ours(u *unit, r multilock.Result) multilock.Result {
	chunk := *r.Chunk
	if chunk.From != u.From || chunk.To != u.To {
		chunk = source.Chunk{From: u.From, To: u.To, Fence: chunk.Fence}
	}
	chunk.Jobs = slices.DeleteFunc(slices.Clone(chunk.Jobs), func(j source.ChunkJob) bool {
		return j.Number < u.From || j.Number > u.To || j.Name != b.jobs[j.Number-1].Name
	})
	chunk.Count()
	r.Chunk = &chunk
	return r
}

func (b *Batch) mergeChunk(u *unit, r multilock.Result) {
	of, root, fence := u.Range, u.root, r.Chunk.Fence // adding parts may move u
	for _, job := range r.Chunk.Jobs {
		b.learned(job.Number-1, job.Result(r))
	}
	for _, part := range r.Chunk.Returned {
		b.localQueue.add(unit{Range: part, of: of, root: root, fence: fence})
	}
}

// learned settles a job if its recorded result is final for this plan.
func (b *Batch) learned(job int, r multilock.Result) {
	if b.plan.Next(time.Time{}, &r).Step != lockgroup.StepRun {
		b.settle(job, r)
	}
}

// settle records a result that is final for this plan. The caller holds the mutex.
func (b *Batch) settle(job int, r multilock.Result) {
	as := jobFailed
	if r.OK() {
		as = jobDone
	}
	if !b.localQueue.settle(job, as) {
		return
	}
	switch {
	case as == jobFailed:
		b.retain(b.failures, job, r)
	case r.Output != "":
		b.retain(b.incomplete, job, r)
	}
}

// maxKept bounds how many failures keep their full result.
const maxKept = 1000

func (b *Batch) retain(in map[int]multilock.Result, job int, r multilock.Result) {
	if len(in) < maxKept {
		r.Name = b.jobs[job].Name
		in[job] = r
	}
}

func describeChunk(r source.Range, of int) string {
	return fmt.Sprintf("jobs %d to %d of %d", r.From, r.To, of)
}

func describeFailed(c *source.Chunk) string {
	return fmt.Sprintf("%d of its %d jobs failed", c.Failed, c.To-c.From+1)
}
