package trial

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/multilock"
)

// seat is what a host holds from when it comes until it leaves.
type seat struct {
	number int
	lock   *multilock.Lock
	marks  []*multilock.Lock
}

// sitDown takes the first free seat. One that is granted though another has it is
// the worst that there can be; the others can only be told of it from a real seat.
func (h *host) sitDown(ctx context.Context) error {
	for number := 1; number <= maxSeats; number++ {
		lock, err := multilock.TryAcquire(ctx, h.Locks, h.seatName(number), h.options(h.Command))
		if errors.Is(err, multilock.ErrHeld) || (errors.Is(err, fs.ErrPermission) && h.isTaken(ctx, number)) {
			continue
		}
		if err != nil {
			return err
		}
		if err = h.check(ctx, lock); err == nil {
			h.seat.number, h.seat.lock = number, lock
			h.Here(1)
			return nil
		}
		_ = giveBack(lock)
		if err := h.noteHarm(err); err != nil {
			return err
		}
	}
	return &noResult{
		text:   fmt.Sprintf("all %d seats are taken: so many locks named %s-NUMBER are held", maxSeats, h.Name),
		advice: "see who holds them: multilock status",
	}
}

// isTaken says whether there is anything in a seat: that of another user who died may
// not be cleared away.
func (h *host) isTaken(ctx context.Context, number int) bool {
	seen, err := h.inspect(ctx, h.seatName(number))
	return err == nil && seen.State != multilock.StateFree
}

// mark takes one more lock, which tells the others how far this host is and what came
// of its turns. One that an earlier participant has left is waited for.
func (h *host) mark(ctx context.Context, mark string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, h.limit, console.ErrWaitOver)
	defer cancel()
	lock, err := multilock.Acquire(ctx, h.Locks, h.markName(h.seat.number, mark), h.options(h.account().text(h.Command, len(h.harm) > 0)))
	if err == nil {
		h.seat.marks = append(h.seat.marks, lock)
	}
	return err
}

// lost says why this host does not hold its seat any more; nil if it does.
func (s *seat) lost() error {
	if s.lock.Context().Err() == nil {
		return nil
	}
	return context.Cause(s.lock.Context())
}

// leave gives back what this host holds, also after Ctrl-C, all of it at once.
func (s *seat) leave() {
	var all sync.WaitGroup
	for _, lock := range append(s.marks, s.lock) {
		if lock != nil {
			all.Go(func() { _ = giveBack(lock) }) // what fails is free when its TTL is over
		}
	}
	all.Wait()
}

// fellOut is the error of a host that lost a lock by its own fault.
func (p place) fellOut(cause error) error {
	return &noResult{
		text:   fmt.Sprintf("this host fell out of the trial: %v", cause),
		advice: fmt.Sprintf("it was suspended, or cut off from the server, for most of %s, or somebody broke its lock; run it again on all hosts", p.ttl),
	}
}
