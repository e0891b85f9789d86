package bounded

import "sync"

// Turn is a mutex that is held during calls which may hang: who came first has it first. Who waits for
// it stands still also as testing/synctest sees it, which takes who waits for a sync.Mutex for
// somebody at work.
type Turn struct {
	mu          sync.Mutex
	cond        *sync.Cond
	came, ended int // how many have come, and how many were done
}

// Lock waits until all are done who came before.
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

// Unlock lets the next one go on.
func (t *Turn) Unlock() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended++
	if t.cond != nil {
		t.cond.Broadcast()
	}
}
