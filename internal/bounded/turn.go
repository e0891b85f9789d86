package bounded

import "sync"

// Turn is a mutex that is held during calls which may hang. Who waits for it stands still also as
// testing/synctest sees it, which takes who waits for a sync.Mutex for somebody at work.
type Turn struct {
	mu    sync.Mutex
	cond  *sync.Cond
	taken bool
}

// Lock waits until nobody has it.
func (t *Turn) Lock() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.taken {
		if t.cond == nil {
			t.cond = sync.NewCond(&t.mu)
		}
		t.cond.Wait()
	}
	t.taken = true
}

// Unlock gives it to somebody who waits.
func (t *Turn) Unlock() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken = false
	if t.cond != nil {
		t.cond.Signal()
	}
}
