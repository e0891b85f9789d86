package batch

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/multilock/go/internal/estimate"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
)

// schedule decides which units to claim and which jobs to begin, from this process's state. It does no
// I/O.
type schedule struct {
	mu sync.Mutex
	claims
	jobStates
	jobs     []Job
	plan     lockgroup.Plan
	stages   stages
	ready    []task        // jobs that wait for a worker, in order
	delayed  map[task]bool // retries during their pause
	idle     int           // workers that wait for a job
	throttle throttle
	delay    time.Duration // shortest time between two starts
	budget   budget
	coming   int // jobs that pending claims may add
	running  int
	holding  int // units
	listRead
	// ended counts final results that are not recorded yet.
	ended counts

	failures   map[int]multilock.Result
	incomplete map[int]multilock.Result // succeeded, with incomplete output
	ran        int
	before     int
	takenOver  int

	work               estimate.Work
	jobTime, claimTime mean
	lastBegun          time.Time
	// changed is closed to wake all waiters.
	changed chan struct{}
}

// task is a pending attempt at a job.
type task struct {
	job     int // index in the list
	number  int // number of the attempt, from 1
	holding *holding
}

// listRead is what a schedule has read of the group's list.
type listRead struct {
	revision int // sections up to the last one that replaces those before it
	known    int // sections
	wanted   int // sections that a record refers to, or that exist
	outdated bool
}

func newSchedule(jobs []Job, opt Options) *schedule {
	q := &schedule{plan: opt.plan(), delay: opt.Delay, changed: make(chan struct{})}
	q.begun(jobs, opt, listRead{known: 1})
	return q
}

// begun resets the state of an earlier list.
func (q *schedule) begun(jobs []Job, opt Options, read listRead) {
	q.jobs, q.listRead = jobs, read
	q.jobStates, q.stages = newJobStates(len(jobs)), newStages(len(jobs), opt.Barriers)
	q.budget = budget{needs: opt.Needs, cpus: opt.Workers, memory: opt.Memory}
	q.ready, q.delayed, q.ended = nil, map[task]bool{}, counts{}
	q.failures, q.incomplete = map[int]multilock.Result{}, map[int]multilock.Result{}
	q.work = estimate.Work{}
	for i := range jobs {
		if jobs[i].Name == "" {
			q.remove(i)
			q.stages.settled(i, jobRemoved)
			q.work.Skip()
			continue
		}
		q.work.Add(jobs[i].Command)
	}
}

// countBefore marks all final results so far as results from before this run.
func (q *schedule) countBefore() {
	q.before = q.done + q.failed
	q.work.Begin()
}

// divide divides the list into units.
func (q *schedule) divide(sections []int, random bool) {
	chance := q.chance
	q.claims = *newClaims(q.stages.divided(sections), q.stages.upTo(), random)
	if chance != nil {
		q.chance = chance
	}
	for i := range q.units {
		if q.openIn(&q.units[i]) == 0 {
			q.set(i, unitFinal)
		}
	}
}

// want records that the list has more sections than were read. The round of work ends when all the
// remaining work depends on them.
func (q *schedule) want(sections int) {
	q.change(func() { q.wanted = max(q.wanted, sections) })
}

// needed returns how many sections must be read.
func (q *schedule) needed() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.wanted
}

// endsRound reports whether this process has nothing left to do without a newer list. Once true, it
// stays true, because workers end on it. The caller holds the mutex.
func (q *schedule) endsRound() bool {
	q.outdated = q.outdated || q.wanted > q.known && q.running+q.holding+len(q.ready)+q.coming+q.free == 0
	return q.outdated
}

// wake makes all waiters check again. The caller holds the mutex.
func (q *schedule) wake() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// await waits until ask returns true. It calls ask after every change.
func (q *schedule) await(ctx context.Context, ask func() bool) error {
	for {
		q.mu.Lock()
		met, changed := ask(), q.changed
		q.mu.Unlock()
		if met {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
	}
}

// take waits for a job to run.
func (q *schedule) take(ctx context.Context) (t task, err error) {
	q.change(func() { q.idle++ })
	defer q.change(func() { q.idle-- })
	var over bool
	err = q.await(ctx, func() bool {
		over = q.over()
		if over || len(q.ready) == 0 || !q.throttle.open() || time.Since(q.lastBegun) < q.delay || !q.budget.fits(q.ready[0].job) || ctx.Err() != nil {
			return over
		}
		t = q.ready[0]
		q.ready = q.ready[1:]
		q.throttle.pass()
		q.budget.spend(t.job)
		t.holding.waiting--
		t.holding.running++
		q.running++
		if q.lastBegun = time.Now(); q.delay > 0 {
			time.AfterFunc(q.delay, func() { q.change(func() {}) }) // wakes the next worker
		}
		return true
	})
	if err == nil && over {
		err = errNothingLeft
	}
	return t, err
}

// change makes a change and wakes the waiters.
func (q *schedule) change(f func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	f()
	q.wake()
}

// toClaim waits until another unit is needed, and picks it. It makes one claim at a time, to keep the
// jobs in order.
func (q *schedule) toClaim(ctx context.Context) (i int, err error) {
	var over bool
	err = q.await(ctx, func() (found bool) {
		over = q.over()
		if over || q.throttle.busy != "" || ctx.Err() != nil || q.wanting()+q.ahead() <= len(q.ready)+q.coming || q.coming > 0 {
			return over
		}
		if i, found = q.pick(); found {
			q.coming += q.units[i].length()
		}
		return found
	})
	if err == nil && over {
		err = errNothingLeft
	}
	return i, err
}

// ahead returns how many jobs will begin during a claim. That many jobs should be ready before it, so
// that no worker is idle.
func (q *schedule) ahead() int {
	if q.jobTime.value == 0 {
		return 0
	}
	workers := q.wanting() + q.running
	return min(int(2*q.claimTime.value*time.Duration(workers)/q.took()), 4*maxChunk)
}

// took estimates how long a job takes, from ended and running jobs.
func (q *schedule) took() time.Duration { return max(q.jobTime.value, time.Since(q.lastBegun)) }

// takeBack removes the ready and delayed jobs of a holding.
func (q *schedule) takeBack(from *holding) {
	kept := q.ready[:0:0]
	for _, t := range q.ready {
		if t.holding != from {
			kept = append(kept, t)
		}
	}
	q.ready = kept
	maps.DeleteFunc(q.delayed, func(t task, _ bool) bool { return t.holding == from })
	from.waiting = 0
}

// waits reports whether this process has nothing to begin while other processes have or may have jobs.
func (q *schedule) waits() bool {
	if q.throttle.busy != "" {
		return q.idle > 0
	}
	return q.wanting() > 0 && len(q.ready)+q.coming+q.free == 0 && len(q.elsewhere) > 0
}

// mean is a moving average.
type mean struct{ value time.Duration }

func (m *mean) add(d time.Duration) {
	if m.value == 0 {
		m.value = d
		return
	}
	m.value += (d - m.value) / 8
}

// pauseFor sleeps, at most until the end of the batch.
func (q *schedule) pauseFor(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	_ = q.await(ctx, q.over)
}

// unit returns a copy of a unit.
func (q *schedule) unit(i int) unit {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.units[i]
}

func (q *schedule) isBusy() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.throttle.busy != ""
}

func (q *schedule) hasCompany() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.company
}

// window returns how long a result waits for other results.
func (q *schedule) window() time.Duration {
	return min(max(q.jobTime.value/windowShare, shortestWindow), longestWindow)
}

// progressPause grows with the number of hosts that would read the updates.
func (q *schedule) progressPause() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	return max(1, time.Duration(len(q.elsewhere))) * progressEvery
}
