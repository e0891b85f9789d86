package lockgroup

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/multilock/go/internal/bounded"
)

// agenda is what is still to be done of a list. The cost of an operation does not
// depend on the length of the list.
type agenda struct {
	mu    sync.Mutex
	state []jobState
	// next is the first job that was not yet in the window, from which jobs are
	// taken at random; window has no more than width of them.
	next   int
	window []int
	width  int
	later  []deferral
	tally  agendaCount
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

// agendaCount is how many jobs are in which state: open counts all that have no
// final result, taken those of them that are in this process's hands, later those
// that somebody else held.
type agendaCount struct{ open, taken, later, done, failed int }

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

func newAgenda(jobs, workers int) *agenda {
	return &agenda{
		state: make([]jobState, jobs), width: max(minWindow, windowPerWorker*workers), tally: agendaCount{open: jobs}, changed: make(chan struct{}),
	}
}

// errNothingLeft says that every job has a final result.
type errNothingLeft struct{}

func (errNothingLeft) Error() string { return "nothing is left to be done" }

// task is a job that was taken. Again says that it was held when it was tried before.
type task struct {
	deferral
	again bool
}

// take waits until there is a job to be tried.
func (a *agenda) take(ctx context.Context) (task, error) {
	for {
		if err := context.Cause(ctx); err != nil {
			return task{}, err
		}
		t, found, pause, changed := a.try(time.Now())
		switch {
		case found:
			return t, nil
		case changed == nil:
			return task{}, errNothingLeft{}
		}
		if _, err := bounded.Wait(ctx, pause, changed); err != nil {
			return task{}, err
		}
	}
}

// try finds a job, or says for how long there will be none unless something
// changes. There is no channel if every job has a final result.
func (a *agenda) try(now time.Time) (t task, found bool, wait time.Duration, changed <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.tally.open == 0 {
		return task{}, false, 0, nil
	}
	if i, ok := a.pick(); ok {
		return a.taken(task{deferral: deferral{job: i}}), true, 0, nil
	}
	if t, found, wait = a.pickLater(now); found {
		return a.taken(t), true, 0, nil
	}
	return task{}, false, wait, a.changed
}

func (a *agenda) taken(t task) task {
	a.state[t.job] = jobTaken
	a.tally.taken++
	return t
}

// pick takes one of the next jobs that nobody is known to be at.
func (a *agenda) pick() (int, bool) {
	for {
		for ; a.next < len(a.state) && len(a.window) < a.width; a.next++ {
			if a.state[a.next] == jobOpen {
				a.window = append(a.window, a.next)
			}
		}
		if len(a.window) == 0 {
			return 0, false
		}
		k, last := rand.IntN(len(a.window)), len(a.window)-1 //nolint:gosec // chance needs no secrecy
		i := a.window[k]
		a.window[k] = a.window[last]
		a.window = a.window[:last]
		if a.state[i] == jobOpen {
			return i, true
		}
	}
}

// pickLater takes the deferred job that is due first, if it is.
func (a *agenda) pickLater(now time.Time) (t task, found bool, wait time.Duration) {
	kept, first := a.later[:0], -1
	for _, d := range a.later {
		if a.state[d.job] != jobOpen {
			continue
		}
		if kept = append(kept, d); first < 0 || d.due.Before(kept[first].due) {
			first = len(kept) - 1
		}
	}
	a.later = kept
	if first < 0 {
		return task{}, false, maxLater // the rest is in the hands of this process
	}
	if wait := kept[first].due.Sub(now); wait > 0 {
		return task{}, false, wait
	}
	t = task{deferral: kept[first], again: true}
	a.later = append(kept[:first], kept[first+1:]...)
	return t, true, 0
}

// postpone gives a job back that somebody else holds, or may hold.
func (a *agenda) postpone(t task) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.giveBack(t.job) {
		return
	}
	t.pause = min(max(2*t.pause, firstLater), maxLater)
	t.due = time.Now().Add(t.pause/2 + rand.N(t.pause)) //nolint:gosec // jitter needs no secrecy
	a.later = append(a.later, t.deferral)
	a.widen()
	a.wake()
}

// abandon is for a job that was not tried to the end. It stays open, for others and
// for another start: this process takes no more jobs, least of all this one.
func (a *agenda) abandon(t task) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.giveBack(t.job)
}

func (a *agenda) giveBack(i int) bool {
	if a.state[i] != jobTaken {
		return false
	}
	a.state[i] = jobOpen
	a.tally.taken--
	return true
}

// settle notes that a job has a final result. It reports false if that was known.
func (a *agenda) settle(i int, as jobState) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch a.state[i] {
	case jobDone, jobFailed:
		return false
	case jobTaken:
		a.tally.taken--
	case jobOpen:
	}
	a.state[i] = as
	a.tally.open--
	if as == jobDone {
		a.tally.done++
	} else {
		a.tally.failed++
	}
	if a.tally.open == 0 {
		a.wake()
	}
	return true
}

// collided notes that a job turned out to be done by somebody else.
func (a *agenda) collided() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.widen()
}

// widen makes it less likely to meet others at a job: those are faster than the
// news of what they have done.
func (a *agenda) widen() { a.width = min(2*a.width, maxWindow) }

func (a *agenda) wake() {
	close(a.changed)
	a.changed = make(chan struct{})
}

func (a *agenda) count() agendaCount {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.tally
	for _, d := range a.later {
		if a.state[d.job] == jobOpen {
			c.later++
		}
	}
	return c
}

// isSettled says whether a job is known to have a final result.
func (a *agenda) isSettled(i int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state[i] == jobDone || a.state[i] == jobFailed
}

// idle says whether there is nothing to be taken but what others hold.
func (a *agenda) idle() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.next == len(a.state) && len(a.window) == 0
}

// waits says whether nothing is left to be taken but what others hold, and others
// do hold something.
func (a *agenda) waits() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.next == len(a.state) && len(a.window) == 0 && a.tally.open > a.tally.taken
}
