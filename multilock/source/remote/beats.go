package remote

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/multilock/go/multilock/boottime"
)

// Beats is the Pulse of a store that counts heartbeats: each is a write to the lock's entry. It
// never expires; observers notice that heartbeats are missing.
type Beats struct {
	Store Store
	// Wait keeps a ticket alive, and calls w.Tell when another attempt makes sense.
	Wait func(w Wait) (stop func())

	good atomic.Pointer[boottime.Instant]
	stop func() // nil while not waiting
}

// Settle implements Pulse.
func (b *Beats) Settle(_ context.Context, a Applied, failed error) (gone bool, err error) {
	if failed == nil && a.Done {
		b.good.Store(&a.Since)
		b.Close(true)
	}
	return false, failed
}

// Since implements Pulse.
func (b *Beats) Since() boottime.Instant {
	if good := b.good.Load(); good != nil {
		return *good
	}
	return boottime.Now()
}

// Await implements Pulse.
func (b *Beats) Await(_ context.Context, w Wait) {
	b.Close(true)
	b.stop = b.Wait(w)
}

// Beat implements Pulse.
func (b *Beats) Beat(ctx context.Context, h *TableLease, limit time.Duration) (mine bool, err error) {
	a, err := b.Store.Apply(ctx, Txn{Then: []Write{{Key: h.Lock, Beat: h.Created}}, Show: []Range{{Key: h.Lock, Keys: true}}, Limit: limit})
	if err != nil || !h.isMine(a.first(0)) {
		return false, err
	}
	b.good.Store(&a.Since)
	return true, nil
}

// Tainted implements Pulse: an attempt that arrives late acquires nothing.
func (b *Beats) Tainted() bool { return false }

// Close implements Pulse.
func (b *Beats) Close(bool) {
	if b.stop != nil {
		b.stop()
		b.stop = nil
	}
}
