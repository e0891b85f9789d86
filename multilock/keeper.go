package multilock

import (
	"context"
	"errors"
	"time"

	"github.com/multilock/go/multilock/boottime"
)

// keeper renews one lock and ends its validity in time. It never blocks in the source: each renewal runs in
// its own goroutine, one at a time, because on a hard NFS mount it may hang for as long as the server is
// down.
//
// The keeper's goroutine starts when the first renewal is due: a lock that is held briefly never needs it,
// and starting one costs as much as several system calls.
type keeper struct {
	lock  *Lock
	beat  time.Duration
	start *time.Timer
	stop  chan struct{}
	done  chan struct{} // closed when the keeper has ended
}

func startKeeper(l *Lock, beat time.Duration) *keeper {
	k := &keeper{lock: l, beat: beat, stop: make(chan struct{}), done: make(chan struct{})}
	k.start = time.AfterFunc(beat/2, k.run)
	return k
}

// halt ends the keeper and waits for it. A renewal that hangs continues; it can only affect this
// acquisition's lock.
func (k *keeper) halt() {
	if k.start.Stop() {
		close(k.done) // it never ran
	}
	select {
	case <-k.stop:
	default:
		close(k.stop)
	}
	<-k.done
}

// run wakes up at least every half heartbeat interval: timers of the runtime do not count suspended time,
// so this is how a machine that slept finds out.
//
// It continues to send heartbeats when the validity is over. The lock may still be in place, and until the
// holder releases it, processes that cannot be stopped may work under it.
func (k *keeper) run() {
	defer close(k.done)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	results := make(chan error, 1)
	last, busy := k.lock.lease.Since(), false
	timer := time.NewTimer(k.pause(last, busy))
	defer timer.Stop()
	for {
		select {
		case <-k.stop:
			return
		case err := <-results:
			busy = false
			if errors.Is(err, ErrLost) && k.gone(err) {
				return
			}
		case <-timer.C:
		}
		_ = k.lock.usable() // ends the validity if its time is over
		if !busy && last.Elapsed() >= k.beat {
			last, busy = boottime.Now(), true
			go func() { results <- k.lock.renew(ctx) }()
		}
		timer.Reset(k.pause(last, busy))
	}
}

// gone reports whether the source itself reported that the lock is lost.
func (k *keeper) gone(err error) bool {
	var lost *LostError
	return errors.As(err, &lost) && lost.Err != nil
}

// pause is the time until the next action is due.
func (k *keeper) pause(last boottime.Instant, busy bool) time.Duration {
	next := k.beat / 2
	if !busy {
		next = min(next, k.beat-last.Elapsed())
	}
	if left := k.lock.Remaining(); left > 0 {
		next = min(next, left)
	}
	return max(next, time.Millisecond)
}
