package cooklock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// cookingTime is how long the holder of a lock may work: four fifths of the period. The rest is for
// ending work that overruns, and for the drift of the hosts' timers: quartz errs by less than 1 in
// 1000, and this allows for 1 in 9.
func cookingTime(period time.Duration) time.Duration { return period - period/5 }

// lease is a lock that ends by time.
type lease struct {
	record source.Record
	start  boottime.Instant
	ends   boottime.Instant
	number uint64 // of the swap, 0 if the register does not number swaps

	mu       sync.Mutex
	drawn    uint64
	released bool
}

var _ source.Timed = (*lease)(nil)

func newLease(record source.Record, start boottime.Instant, cook time.Duration, number uint64) *lease {
	return &lease{record: record, start: start, ends: start.Add(cook), number: number}
}

// remaining is the time until the lock ends.
func (l *lease) remaining() time.Duration { return -l.ends.Elapsed() }

// Record implements source.Lease.
func (l *lease) Record() source.Record { return l.record }

// Since implements source.Lease.
func (l *lease) Since() boottime.Instant { return l.start }

// Ends implements source.Timed.
func (l *lease) Ends() boottime.Instant { return l.ends }

// Renew implements source.Lease: it reports whether the time is over. It sends no request, because
// the lock cannot be acquired earlier, and prolongs nothing.
func (l *lease) Renew(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.usable()
}

func (l *lease) usable() error {
	switch {
	case l.released:
		return source.ErrReleased
	case l.remaining() <= 0:
		return &source.LostError{Name: l.record.Name, Silence: l.start.Elapsed(), Err: source.ErrOver}
	}
	return nil
}

// Release implements source.Lease: the holder stops using the lock. The lock is not free any
// earlier.
func (l *lease) Release(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.usable()
	l.released = true
	return err
}

// fencesPerSwap is how many fencing tokens one acquisition has: the number of its swap, and six
// more digits for a counter.
const fencesPerSwap = 1_000_000

// Fence implements source.Lease.
func (l *lease) Fence(context.Context) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.usable(); err != nil {
		return 0, err
	}
	if l.number == 0 {
		return 0, source.ErrUnsupported
	}
	if l.drawn+1 == fencesPerSwap {
		return 0, &source.OpError{Source: sourceName, Op: "draw a fencing number", Name: l.record.Name, Err: errors.New("this acquisition has used up its numbers")}
	}
	l.drawn++
	return l.number*fencesPerSwap + l.drawn, nil
}

// MarkJob implements source.Lease. It is not supported: time alone decides.
func (l *lease) MarkJob(context.Context, ...process.Group) error { return source.ErrUnsupported }

// Close implements source.Lease.
func (l *lease) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.released = true
	return nil
}
