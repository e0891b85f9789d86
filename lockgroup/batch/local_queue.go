package batch

import (
	"context"
	"sync"
	"time"
)

// localQueue has the jobs of the units that this process holds, and the workers that wait for them.
type localQueue struct {
	mu sync.Mutex
	claims
	jobStates
	stages   stages
	ready    []task // jobs that wait for a worker, in order
	idle     int    // workers that wait for a job
	throttle throttle
	budget   budget
	coming   int // jobs that pending claims may bring
	running  int
	// ended counts final results that are not recorded yet.
	ended counts

	jobTime, claimTime mean
	lastBegun          time.Time
	// changed is closed to wake all waiters.
	changed chan struct{}
}

// task is an attempt to make at a job.
type task struct {
	job     int // index in the list
	number  int // number of the attempt, from 1
	holding *holding
}

func newLocalQueue(jobs int, barriers []int) *localQueue {
	return &localQueue{jobStates: newJobStates(jobs), stages: newStages(jobs, barriers), changed: make(chan struct{})}
}

// wake makes all waiters check again. The caller holds the mutex.
func (q *localQueue) wake() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// await waits until ask returns true. It calls ask after every change.
func (q *localQueue) await(ctx context.Context, ask func() bool) error {
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
func (q *localQueue) take(ctx context.Context) (t task, err error) {
	q.change(func() { q.idle++ })
	defer q.change(func() { q.idle-- })
	var over bool
	err = q.await(ctx, func() bool {
		over = q.over()
		if over || len(q.ready) == 0 || !q.throttle.open() || !q.budget.fits(q.ready[0].job) || ctx.Err() != nil {
			return over
		}
		t = q.ready[0]
		q.ready = q.ready[1:]
		q.throttle.pass()
		q.budget.spend(t.job)
		t.holding.waiting--
		t.holding.running++
		q.running++
		q.lastBegun = time.Now()
		return true
	})
	if err == nil && over {
		err = errNothingLeft
	}
	return t, err
}

// change makes a change and wakes the waiters.
func (q *localQueue) change(f func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	f()
	q.wake()
}

// toClaim waits until another unit is needed, and picks it. It makes one claim at a time, to keep
// jobs in order.
func (q *localQueue) toClaim(ctx context.Context) (i int, err error) {
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

// ahead returns how many jobs will begin while a claim is made: as many should be ready first, so
// that no worker is idle.
func (q *localQueue) ahead() int {
	if q.jobTime.value == 0 {
		return 0
	}
	workers := q.wanting() + q.running
	return min(int(2*q.claimTime.value*time.Duration(workers)/q.took()), 4*maxChunk)
}

// took estimates how long a job takes, from ended and running jobs.
func (q *localQueue) took() time.Duration { return max(q.jobTime.value, time.Since(q.lastBegun)) }

// takeBack removes the ready jobs of a holding.
func (q *localQueue) takeBack(from *holding) {
	kept := q.ready[:0:0]
	for _, t := range q.ready {
		if t.holding != from {
			kept = append(kept, t)
		}
	}
	q.ready = kept
	from.waiting = 0
}

// waits reports whether this process has nothing to begin while other processes have, or may have.
func (q *localQueue) waits() bool {
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

// pauseFor sleeps, but not beyond the end of the batch.
func (q *localQueue) pauseFor(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	_ = q.await(ctx, q.over)
}
