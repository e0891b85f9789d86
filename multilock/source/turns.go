package source

import (
	"math/rand/v2"
	"sync"
	"time"
)

// TurnTaking is a Source that remembers the turns of this process at its locks, so that
// one who takes the same lock again and again lets others have it in between. Nobody is
// asked for that: it rests on what this process has seen of its own waits.
type TurnTaking interface {
	Source
	Turns() *Turns
}

// Turns is that memory. The zero value is empty, and may be used at once.
type Turns struct {
	// Prompt says that the news of Contender.Wake are of every release, whoever makes it:
	// where there are any, it is enough to stand back for a moment.
	Prompt bool

	mu sync.Mutex
	of map[string]*Turn
}

// mostTurns bounds the memory. What is forgotten is only courtesy.
const mostTurns = 1000

// Of is what is remembered of one lock.
func (t *Turns) Of(name string) *Turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	turn := t.of[name]
	if turn == nil {
		if t.of == nil || len(t.of) >= mostTurns {
			t.of = map[string]*Turn{}
		}
		turn = &Turn{}
		t.of[name] = turn
	}
	return turn
}

// Turn is what this process remembers of its turns at one lock.
type Turn struct {
	mu     sync.Mutex
	waits  time.Duration // how long it takes to get the lock, while others want it, too
	others int           // turns for which that is believed yet; 0 if nobody else seems to want it
	alone  int           // turns in a row for which nobody did
	held   time.Duration // how long the last turn was
	gave   time.Time     // when it was over
	owed   time.Duration // pauses too short to be made
}

const (
	// othersLast is for how many turns without a refusal others are reckoned with. They
	// may have found no gap yet that was long enough.
	othersLast = 8
	// aloneMost bounds what is given up for others of whom nothing is known: a 16th of
	// the time for which the lock is held.
	aloneMost = 5
	// leastBack is the shortest pause that others can make use of.
	leastBack = time.Millisecond
)

// StandBack is how long to leave the lock to others before the first attempt, most at the
// longest. Others ask the sooner the shorter they have waited, so the pause is as long as
// the waits here have been, by and large: others who wait have done so for as long.
func (t *Turn) StandBack(most time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gave.IsZero() {
		return 0
	}
	back := 2 * t.held >> min(t.alone/2, aloneMost)
	if t.others > 0 {
		back = max(2*t.held, t.waits/2)
	}
	back = min(back, most*2/3)
	back = back/2 + rand.N(back+1) - time.Since(t.gave) + t.owed //nolint:gosec // jitter needs no secrecy
	if t.owed = max(back, 0); t.owed < leastBack {
		return 0
	}
	t.owed = 0
	return back
}

// Waits is how long it may take to get the lock; 0 if nobody else seems to want it.
func (t *Turn) Waits() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.others == 0 {
		return 0
	}
	return t.waits
}

// Took notes that the lock was taken after a wait, and whether somebody else was met.
func (t *Turn) Took(waited time.Duration, met bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case met:
		t.waits, t.others, t.alone = max(waited, t.waits*4/5), othersLast, 0
	case t.others > 0:
		t.others--
		t.waits = max(waited, t.waits*9/10)
	default:
		t.alone++
	}
}

// Gave notes that the lock was given back, after so long.
func (t *Turn) Gave(held time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held, t.gave = held, time.Now()
}
