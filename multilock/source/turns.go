package source

import (
	"math/rand/v2"
	"sync"
	"time"
)

// TurnTaking is a Source that records how this process used its locks, so that a process that
// acquires the same lock repeatedly lets other waiters have it in between. No request is sent for
// that: only the process's own waits count.
type TurnTaking interface {
	Source
	Turns() *Turns
}

// Turns has a Turn for each lock. The zero value is ready to use.
type Turns struct {
	// Prompt means that Contender.Wake reports every release by any process: then a short pause is
	// enough.
	Prompt bool

	mu sync.Mutex
	of map[string]*Turn
}

// maxTurns limits the number of locks. Dropping entries only costs fairness.
const maxTurns = 1000

// Of returns the Turn of a lock.
func (t *Turns) Of(name string) *Turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	turn := t.of[name]
	if turn == nil {
		if t.of == nil || len(t.of) >= maxTurns {
			t.of = map[string]*Turn{}
		}
		turn = &Turn{}
		t.of[name] = turn
	}
	return turn
}

// Turn records how this process used one lock.
type Turn struct {
	mu       sync.Mutex
	waits    time.Duration // how long an acquisition takes under contention
	others   int           // further turns for which contention is assumed; 0 for none
	alone    int           // consecutive turns without contention
	held     time.Duration // duration of the last turn
	released time.Time     // end of the last turn
	skipped  time.Duration // accumulated pauses that were too short
}

const (
	// contendedTurns is the number of turns without contention for which other waiters are still
	// assumed. They may not have found a gap yet that was long enough.
	contendedTurns = 8
	// maxAloneShift limits how far the pause shrinks while no contention is seen: to a 16th of the
	// time for which the lock was held.
	maxAloneShift = 5
	// minPause is the shortest pause that other waiters can use.
	minPause = time.Millisecond
)

// StandBack returns how long to pause before the first attempt, most at the longest. Waiters retry
// more often the shorter they have waited, so the pause is in proportion to this process's own
// waits: other waiters have waited for about as long.
func (t *Turn) StandBack(most time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.released.IsZero() {
		return 0
	}
	back := 2 * t.held >> min(t.alone/2, maxAloneShift)
	if t.others > 0 {
		back = max(2*t.held, t.waits/2)
	}
	back = min(back, most*2/3)
	back = back/2 + rand.N(back+1) - time.Since(t.released) + t.skipped //nolint:gosec // jitter needs no secrecy
	if t.skipped = max(back, 0); t.skipped < minPause {
		return 0
	}
	t.skipped = 0
	return back
}

// Waits returns how long an acquisition may take; 0 without contention.
func (t *Turn) Waits() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.others == 0 {
		return 0
	}
	return t.waits
}

// Took records an acquisition after a wait; met is whether another process had the lock.
func (t *Turn) Took(waited time.Duration, met bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case met:
		t.waits, t.others, t.alone = max(waited, t.waits*4/5), contendedTurns, 0
	case t.others > 0:
		t.others--
		t.waits = max(waited, t.waits*9/10)
	default:
		t.alone++
	}
}

// Gave records a release, and for how long the lock was held.
func (t *Turn) Gave(held time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held, t.released = held, time.Now()
}
