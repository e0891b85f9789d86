package remote

import (
	"sync"
	"time"
)

// News is what a contender that waits has heard since its last attempt, of a server that tells.
// As long as that is nothing, another attempt would be refused, too. Of the nil pointer nobody
// has asked for any.
type News struct {
	wake     chan struct{}
	believed time.Duration

	mu      sync.Mutex
	heard   bool
	refused time.Time // the last attempt, zero if it was not refused, or nobody listens
}

// NewNews has heard nothing, and nobody was refused yet. For so long it is believed that there are none.
func NewNews(believed time.Duration) *News {
	return &News{wake: make(chan struct{}, 1), believed: believed}
}

// Wake is for source.Contender.
func (n *News) Wake() <-chan struct{} { return n.wake }

// Quiet says that an attempt would be refused once more.
func (n *News) Quiet() bool {
	if n == nil {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.heard && time.Since(n.refused) < n.believed
}

// Begin is called before an attempt: what happens from now on is news.
func (n *News) Begin() {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.heard, n.refused = false, time.Time{}
}

// Refused is called after one that was refused, when somebody listens for what has happened since.
func (n *News) Refused() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.refused = time.Now()
}

// Tell says that something has happened, or that nobody listens any more.
func (n *News) Tell() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.heard = true
	select {
	case n.wake <- struct{}{}:
	default:
	}
}
