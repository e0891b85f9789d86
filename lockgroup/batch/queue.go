package batch

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/multilock/go/internal/bounded"
)

// queue is what is still to be done of a list. The cost of an operation does not
// depend on the length of the list.
type queue struct {
	mu    sync.Mutex
	state []jobState
	// next is the first job that was not yet in the window, from which jobs are
	// taken at random; window has no more than width of them.
	next   int
	window []int
	width  int
	later  []deferral
	counts counts
	// changed is closed when those who wait for something to do should look again.
	changed chan struct{}
}

// deferral is a job that somebody else held when it was tried.
type deferral struct {
	job   int
	due   time.Time
	pause time.Duration
}

type jobState uint8

const (
	jobOpen jobState = iota
	jobTaken
	jobDone
	jobFailed
)

// counts is how many jobs are in which state: open counts all that have no
// final result, taken those of them that are in this process's hands, later those
// that somebody else held.
type counts struct{ open, taken, later, done, failed int }

const (
	// minWindow and windowPerWorker make the window so wide that hosts seldom meet.
	minWindow       = 64
	windowPerWorker = 8
	// maxWindow bounds how far from the list's order a batch may come.
	maxWindow = 8192
	// A job that somebody else holds is tried again after firstLater, and then in
	// growing intervals up to maxLater: its holder may have died.
	firstLater = time.Second
	maxLater   = 15 * time.Second
)

func newQueue(jobs, workers int) *queue {
	return &queue{
		state: make([]jobState, jobs), width: max(minWindow, windowPerWorker*workers), counts: counts{open: jobs}, changed: make(chan struct{}),
	}
}

// errNothingLeft says that every job has a final result.
var errNothingLeft = errors.New("nothing is left to be done")

// task is a job that was taken. Again says that it was held when it was tried before.
type task struct {
	deferral
	again bool
}

// take waits until there is a job to be tried.
func (q *queue) take(ctx context.Context) (task, error) {
	for {
		if err := context.Cause(ctx); err != nil {
			return task{}, err
		}
		t, found, pause, changed := q.try(time.Now())
		switch {
		case found:
			return t, nil
		case changed == nil:
			return task{}, errNothingLeft
		}
		if _, err := bounded.Wait(ctx, pause, changed); err != nil {
			return task{}, err
		}
	}
}

// try finds a job, or says for how long there will be none unless something
// changes. There is no channel if every job has a final result.
func (q *queue) try(now time.Time) (t task, found bool, wait time.Duration, changed <-chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.counts.open == 0 {
		return task{}, false, 0, nil
	}
	if i, ok := q.pick(); ok {
		return q.taken(task{deferral: deferral{job: i}}), true, 0, nil
	}
	if t, found, wait = q.pickLater(now); found {
		return q.taken(t), true, 0, nil
	}
	return task{}, false, wait, q.changed
}

func (q *queue) taken(t task) task {
	q.state[t.job] = jobTaken
	q.counts.taken++
	return t
}

// pick takes one of the next jobs that nobody is known to be at.
func (q *queue) pick() (int, bool) {
	for {
		for ; q.next < len(q.state) && len(q.window) < q.width; q.next++ {
			if q.state[q.next] == jobOpen {
				q.window = append(q.window, q.next)
			}
		}
		if len(q.window) == 0 {
			return 0, false
		}
		k, last := rand.IntN(len(q.window)), len(q.window)-1 //nolint:gosec // chance needs no secrecy
		i := q.window[k]
		q.window[k] = q.window[last]
		q.window = q.window[:last]
		if q.state[i] == jobOpen {
			return i, true
		}
	}
}

// pickLater takes the deferred job that is due first, if it is.
func (q *queue) pickLater(now time.Time) (t task, found bool, wait time.Duration) {
	kept, first := q.later[:0], -1
	for _, d := range q.later {
		if q.state[d.job] != jobOpen {
			continue
		}
		if kept = append(kept, d); first < 0 || d.due.Before(kept[first].due) {
			first = len(kept) - 1
		}
	}
	q.later = kept
	if first < 0 {
		return task{}, false, maxLater // the rest is in the hands of this process
	}
	if wait := kept[first].due.Sub(now); wait > 0 {
		return task{}, false, wait
	}
	t = task{deferral: kept[first], again: true}
	q.later = append(kept[:first], kept[first+1:]...)
	return t, true, 0
}

// postpone gives a job back that somebody else holds, or may hold.
func (q *queue) postpone(t task) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.giveBack(t.job) {
		return
	}
	t.pause = min(max(2*t.pause, firstLater), maxLater)
	t.due = time.Now().Add(t.pause/2 + rand.N(t.pause)) //nolint:gosec // jitter needs no secrecy
	q.later = append(q.later, t.deferral)
	q.widen()
	q.wake()
}

// abandon is for a job that was not tried to the end. It stays open, for others and
// for another start: this process takes no more jobs, least of all this one.
func (q *queue) abandon(t task) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.giveBack(t.job)
}

func (q *queue) giveBack(i int) bool {
	if q.state[i] != jobTaken {
		return false
	}
	q.state[i] = jobOpen
	q.counts.taken--
	return true
}

// settle notes that a job has a final result. It reports false if that was known.
func (q *queue) settle(i int, as jobState) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch q.state[i] {
	case jobDone, jobFailed:
		return false
	case jobTaken:
		q.counts.taken--
	case jobOpen:
	}
	q.state[i] = as
	q.counts.open--
	if as == jobDone {
		q.counts.done++
	} else {
		q.counts.failed++
	}
	if q.counts.open == 0 {
		q.wake()
	}
	return true
}

// collided notes that a job turned out to be done by somebody else.
func (q *queue) collided() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.widen()
}

// widen makes it less likely to meet others at a job: those are faster than the
// news of what they have done.
func (q *queue) widen() { q.width = min(2*q.width, maxWindow) }

func (q *queue) wake() {
	close(q.changed)
	q.changed = make(chan struct{})
}

func (q *queue) count() counts {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.counts
	for _, d := range q.later {
		if q.state[d.job] == jobOpen {
			c.later++
		}
	}
	return c
}

// isSettled says whether a job is known to have a final result.
func (q *queue) isSettled(i int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.state[i] == jobDone || q.state[i] == jobFailed
}

// idle says whether there is nothing to be taken but what others hold.
func (q *queue) idle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.allTaken()
}

func (q *queue) allTaken() bool { return q.next == len(q.state) && len(q.window) == 0 }

// waits says whether nothing is left to be taken but what others hold, and others
// do hold something.
func (q *queue) waits() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.allTaken() && q.counts.open > q.counts.taken
}
