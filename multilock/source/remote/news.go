package remote

import (
	"sync"
	"time"
)

// News are a waiter's notifications from the server since its last attempt. Without a notification
// another attempt would fail, too. A nil *News is for a contender that does not wait.
type News struct {
	wake     chan struct{}
	believed time.Duration

	mu      sync.Mutex
	heard   bool
	refused time.Time // when the last attempt failed; zero without a subscription since
}

// NewNews returns News without notifications. believed is how long after an attempt a missing
// notification is trusted.
func NewNews(believed time.Duration) *News {
	return &News{wake: make(chan struct{}, 1), believed: believed}
}

// Wake returns the channel for source.Contender.
func (n *News) Wake() <-chan struct{} { return n.wake }

// Quiet reports whether another attempt would fail again.
func (n *News) Quiet() bool {
	if n == nil {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.heard && time.Since(n.refused) < n.believed
}

// Begin is called before an attempt: notifications count from now on.
func (n *News) Begin() {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.heard, n.refused = false, time.Time{}
}

// Refused is called after an attempt that found the lock held, once the contender is subscribed to
// changes since then.
func (n *News) Refused() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.refused = time.Now()
}

// Tell notifies the waiter: something has changed, or the subscription has ended.
func (n *News) Tell() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.heard = true
	select {
	case n.wake <- struct{}{}:
	default:
	}
}
