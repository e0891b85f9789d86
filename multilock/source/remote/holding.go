package remote

import (
	"sync"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/source"
)

// Holding is the part of a lease that sends no requests, for embedding: its record, and how it
// ended.
type Holding struct {
	record source.Record
	since  boottime.Instant

	mu    sync.Mutex
	ended error
	ends  []func()
}

// NewHolding returns the Holding of an acquired lock. since is a moment before the acquisition,
// from which the validity counts.
func NewHolding(r source.Record, since boottime.Instant) *Holding {
	return &Holding{record: r, since: since}
}

// Record implements source.Lease.
func (h *Holding) Record() source.Record { return h.record }

// Since implements source.Lease.
func (h *Holding) Since() boottime.Instant { return h.since }

// Ended returns why the lease has ended, nil if it has not.
func (h *Holding) Ended() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ended
}

// End ends the lease, and returns why. The first reason is kept.
func (h *Holding) End(why error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended == nil {
		h.ended = why
		for _, end := range h.ends {
			end()
		}
	}
	return why
}

// OnEnd registers a function to be called when the lease ends.
func (h *Holding) OnEnd(end func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended != nil {
		end()
	}
	h.ends = append(h.ends, end)
}

// Lost returns the error that the lease no longer holds the lock.
func (h *Holding) Lost(why error) error {
	return &source.LostError{Name: h.record.Name, Silence: h.since.Elapsed(), Err: why}
}

// Close implements source.Lease: the lock stays held until its TTL has passed.
func (h *Holding) Close() error {
	_ = h.End(source.ErrReleased)
	return nil
}
