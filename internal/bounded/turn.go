package bounded

import "sync"

// Turn is a first-come, first-served mutex that is held during calls which may hang. Unlike a goroutine
// that waits for a sync.Mutex, one that waits for a Turn counts as durably blocked for
// testing/synctest.
type Turn struct {
	mu          sync.Mutex
	cond        *sync.Cond
	came, ended int // how many callers have come, and how many are done
}

// Lock waits until all earlier callers are done.
func (t *Turn) Lock() {
	t.mu.Lock()
	defer t.mu.Unlock()
	mine := t.came
	t.came++
	for t.ended != mine {
		if t.cond == nil {
			t.cond = sync.NewCond(&t.mu)
		}
		t.cond.Wait()
	}
}

// Unlock lets the next caller proceed.
func (t *Turn) Unlock() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended++
	if t.cond != nil {
		t.cond.Broadcast()
	}
}
