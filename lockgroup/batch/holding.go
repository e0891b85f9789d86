package batch

import (
	"cmp"
	"slices"
	"time"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// holding is a unit that this process holds. The mutex of schedule guards its variable fields.
type holding struct {
	unit  int
	lock  *multilock.Lock
	fence uint64 // for its jobs' attempts; 0 without fencing
	// revision is the record's revision when the lock was acquired: see source.Chunk.
	revision int

	jobs     []source.ChunkJob // results of its jobs, recorded or to record, in order
	returned []source.Range
	parts    []unit // to give back with the next record
	last     multilock.Result
	fresh    []attempt // not recorded yet
	since    time.Time // since when the oldest entry of fresh waits
	urgent   bool      // record without delay
	// inherited means that an earlier holder wrote the record. It must be rewritten: checkPart compares
	// the record's token with the lock's.
	inherited bool
	waiting   int // its jobs that wait for a worker
	running   int
	// stopped is why no more of its jobs begin, nil while they do. With lingering, the lock expires
	// with its TTL instead of being released.
	stopped   error
	lingering bool
	dead      bool // nothing more can be recorded
	recorded  bool // something was recorded
	begun     time.Time
	reported  time.Time // when other processes were last informed
}

// attempt is an attempt that has ended.
type attempt struct {
	job    int
	result multilock.Result
}

// begin queues the remaining jobs of a holding. The caller holds the mutex.
func (q *schedule) begin(h *holding) {
	for _, job := range q.left(h) {
		next := 1
		if last, known := h.lastOf(job); known {
			next = q.plan.Again(last).Attempt
		}
		q.ready = append(q.ready, task{job: job, number: next, holding: h})
		h.waiting++
	}
	h.inherited = len(h.returned) > 0 && h.waiting > 0
	if h.waiting == 0 {
		q.set(h.unit, unitFinal) // even if a result was deleted
	}
}

// left returns the indexes of a holding's remaining jobs.
func (q *schedule) left(h *holding) (jobs []int) {
	u := &q.units[h.unit]
	for i := u.From - 1; i < u.To; i++ {
		back := slices.ContainsFunc(h.returned, func(r source.Range) bool { return r.From <= i+1 && i+1 <= r.To })
		if q.state[i] == jobOpen && !back {
			jobs = append(jobs, i)
		}
	}
	if q.random {
		shuffle(jobs)
	}
	return jobs
}

// lastOf returns the recorded result of a job.
func (h *holding) lastOf(job int) (multilock.Result, bool) {
	at, known := slices.BinarySearchFunc(h.jobs, job+1, func(j source.ChunkJob, n int) int { return cmp.Compare(j.Number, n) })
	if !known {
		return multilock.Result{}, false
	}
	return h.jobs[at].Result(h.last), true
}

// inherit returns an earlier holder's job results, for the records of this process.
func inherit(last multilock.Result) []source.ChunkJob {
	jobs := slices.Clone(last.Chunk.Jobs)
	for i := range jobs {
		jobs[i] = jobs[i].On(last.By.Host)
	}
	return jobs
}

// signed adds the holder's identity to a result.
func (h *holding) signed(r multilock.Result) multilock.Result {
	record := h.lock.Record()
	r.Name, r.Token, r.By = record.Name, record.Token, record.Holder.Identity
	r.User, r.Command = record.Holder.User, record.Holder.Command
	return r
}

// due reports whether to record now, and otherwise when to ask again.
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
