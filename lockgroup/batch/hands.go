package batch

import (
	"context"
	"sync"
	"time"
)

// hands are what this process has of a list: the jobs of the units that it holds, and the
// workers that wait for them.
type hands struct {
	mu sync.Mutex
	claims
	tally
	stages  stages
	ready   []task // jobs that wait for a worker, in the order in which they are to be begun
	idle    int    // workers that wait for a job
	gate    gate
	budget  budget
	coming  int // jobs that the claims under way may bring
	running int
	serial  bool // one claim is made after the other: each brings many jobs, and these are in order
	// ended are results of this process that are not recorded yet, as far as they are final.
	ended counts

	jobTime, claimTime mean
	lastBegun          time.Time
	// changed is closed when those who wait for something should look again.
	changed chan struct{}
}

// task is one attempt at a job that is to be made.
type task struct {
	job     int // in the list, from 0
	number  int // of the attempt, from 1
	holding *holding
}

func newHands(jobs int, barriers []int) *hands {
	return &hands{tally: newTally(jobs), stages: newStages(jobs, barriers), changed: make(chan struct{})}
}

// wake has all those look again who wait. The caller holds the mutex.
func (h *hands) wake() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// await waits until ask says true, which is asked again after every change.
func (h *hands) await(ctx context.Context, ask func() bool) error {
	for {
		h.mu.Lock()
		met, changed := ask(), h.changed
		h.mu.Unlock()
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

// take waits until there is a job to be run.
func (h *hands) take(ctx context.Context) (t task, err error) {
	h.change(func() { h.idle++ })
	defer h.change(func() { h.idle-- })
	var over bool
	err = h.await(ctx, func() bool {
		over = h.over()
		if over || len(h.ready) == 0 || !h.gate.open() || !h.budget.fits(h.ready[0].job) || ctx.Err() != nil {
			return over
		}
		t = h.ready[0]
		h.ready = h.ready[1:]
		h.gate.pass()
		h.budget.spend(t.job)
		t.holding.waiting--
		t.holding.running++
		h.running++
		h.lastBegun = time.Now()
		return true
	})
	if err == nil && over {
		err = errNothingLeft
	}
	return t, err
}

// change changes something that others may wait for.
func (h *hands) change(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
	h.wake()
}

// toClaim waits until another unit is to be claimed, and picks it.
func (h *hands) toClaim(ctx context.Context) (i int, err error) {
	var over bool
	err = h.await(ctx, func() (found bool) {
		over = h.over()
		if over || h.gate.busy != "" || ctx.Err() != nil || h.wanting()+h.ahead() <= len(h.ready)+h.coming || h.serial && h.coming > 0 {
			return over
		}
		if i, found = h.pick(); found {
			h.coming += h.units[i].length()
		}
		return found
	})
	if err == nil && over {
		err = errNothingLeft
	}
	return i, err
}

// ahead is how many jobs will be begun here while a claim is made: so many are to be ready
// when it begins, or workers stand idle.
func (h *hands) ahead() int {
	if h.jobTime.value == 0 {
		return 0
	}
	workers := h.wanting() + h.running
	return min(int(2*h.claimTime.value*time.Duration(workers)/h.took()), 4*maxChunk)
}

// took is how long a job takes, as far as those tell that have ended, and those that have not.
func (h *hands) took() time.Duration { return max(h.jobTime.value, time.Since(h.lastBegun)) }

// takeBack takes the jobs of a holding away from the workers.
func (h *hands) takeBack(from *holding) {
	kept := h.ready[:0:0]
	for _, t := range h.ready {
		if t.holding != from {
			kept = append(kept, t)
		}
	}
	h.ready = kept
	from.waiting = 0
}

// waits says whether nothing is to be begun here, while others have something, or may have.
func (h *hands) waits() bool {
	if h.gate.busy != "" {
		return h.idle > 0
	}
	return h.wanting() > 0 && len(h.ready)+h.coming+h.free == 0 && len(h.elsewhere) > 0
}

// mean is a mean of durations that forgets the old ones.
type mean struct{ value time.Duration }

func (m *mean) add(d time.Duration) {
	if m.value == 0 {
		m.value = d
		return
	}
	m.value += (d - m.value) / 8
}

func (b *Batch) isIdle() bool {
	b.hands.mu.Lock()
	defer b.hands.mu.Unlock()
	return b.hands.waits()
}

// pauseFor waits, but not beyond the end of the batch.
func (h *hands) pauseFor(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	_ = h.await(ctx, h.over)
}

// isOver says whether nothing is left to be begun, by anybody.
func (h *hands) isOver() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.over()
}
