package trial

import (
	"context"
	"errors"
	"time"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock"
)

// turns are those of this host with the lock that all contend for.
type turns struct {
	place
	tries   int
	had     int
	fences  []uint64      // the numbers of the turns, if the source has such
	next    time.Time     // when it is this host's time to try again
	latest  time.Duration // for the last attempt
	parting time.Duration // the longest for giving the lock back
}

// contend makes one attempt. If that succeeds it is this host's turn; else inTheWay is
// what was seen of the lock.
func (t *turns) contend(ctx context.Context) (inTheWay *multilock.Sighting, err error) {
	start := time.Now()
	lock, err := multilock.TryAcquire(ctx, t.Locks, t.Name, t.options(t.Command))
	t.tries++
	t.latest = time.Since(start)
	var held *multilock.HeldError
	switch {
	case errors.As(err, &held):
		return &held.Sighting, nil
	case err != nil:
		return nil, err
	}
	err = t.turn(ctx, lock)
	t.next = time.Now().Add(t.length())
	return nil, err
}

// length is time enough for all others to find the lock held, also where an attempt
// takes long.
func (t *turns) length() time.Duration {
	return max(t.hold, min(3*t.latest, t.ttl/3))
}

// turn holds the lock for a while, and verifies that it is nobody else's.
func (t *turns) turn(ctx context.Context, lock *multilock.Lock) error {
	number, err := t.underLock(ctx, lock)
	start := time.Now()
	released := giveBack(lock)
	t.parting = max(t.parting, time.Since(start))
	if errors.As(err, new(*unsafeError)) {
		return err
	}
	err = errors.Join(err, released)
	if lost := (*multilock.LostError)(nil); errors.As(err, &lost) {
		return t.lost(lost)
	}
	if err != nil {
		return err
	}
	t.had++
	return t.count(number)
}

// underLock is a turn. The number is 0 if the source has none.
func (t *turns) underLock(ctx context.Context, lock *multilock.Lock) (number uint64, err error) {
	number, err = lock.Fence(ctx)
	if err != nil && !errors.Is(err, multilock.ErrUnsupported) {
		return 0, err
	}
	if err := t.check(ctx, lock); err != nil {
		return 0, err
	}
	if err := bounded.Sleep(ctx, t.length()); err != nil {
		return 0, err
	}
	return number, t.check(ctx, lock)
}

// count notes the number of a turn.
func (t *turns) count(number uint64) error {
	if number == 0 {
		return nil
	}
	before := uint64(0)
	if n := len(t.fences); n > 0 {
		before = t.fences[n-1]
	}
	t.fences = append(t.fences, number)
	if number <= before {
		return unsafef("the fencing numbers of this host's turns do not grow: %d came after %d", number, before)
	}
	return nil
}

// lost tells a lock that was taken away from one for which this host was too slow:
// if it gave no sign of life, others may have it.
func (t *turns) lost(lost *multilock.LostError) error {
	if lost.Err == nil || lost.Silence >= t.ttl-t.ttl/5 {
		return t.fellOut(lost)
	}
	return unsafef("the lock was taken away from this host while it held it, unless somebody broke it by force: %v", lost)
}
