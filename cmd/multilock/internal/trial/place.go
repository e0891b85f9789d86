package trial

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// place is the locks under trial, as one host asks for them.
type place struct {
	Spec
	pace
}

const (
	toldMark = "told"
	readMark = "read"
	maxSeats = 1000
)

func (p place) seatName(seat int) string { return p.Name + "-" + strconv.Itoa(seat) }

func (p place) markName(seat int, mark string) string { return p.seatName(seat) + "-" + mark }

// cutSeat takes the name of a seat, or of a mark of its holder's, apart; mark is ""
// for the seat itself.
func (p place) cutSeat(name string) (seat int, mark string, ok bool) {
	rest, ok := strings.CutPrefix(name, p.Name+"-")
	if !ok {
		return 0, "", false
	}
	digits, mark, marked := strings.Cut(rest, "-")
	seat, err := strconv.Atoi(digits)
	if err != nil || strconv.Itoa(seat) != digits || seat < 1 || seat > maxSeats || (marked && mark != toldMark && mark != readMark) {
		return 0, "", false
	}
	return seat, mark, true
}

func (p place) options(command string) multilock.Options {
	return multilock.Options{TTL: p.ttl, User: p.User, Command: command}
}

func (p place) inspect(ctx context.Context, name string) (multilock.Sighting, error) {
	return multilock.Inspect(ctx, p.Locks, name, multilock.Patience{})
}

// check looks whether the source shows a lock of this host's as such; an
// *unsafeError says that it does not. A look may be a cache's memory, so there are
// several.
func (p place) check(ctx context.Context, lock *multilock.Lock) error {
	const looks = 3
	own := lock.Record()
	var seen multilock.Sighting
	for n := range looks {
		if n > 0 {
			if err := bounded.Sleep(ctx, p.pause); err != nil {
				return err
			}
		}
		var err error
		if seen, err = p.inspect(ctx, own.Name); err != nil {
			return err
		}
		if seen.State != multilock.StateFree && seen.Record.Token == own.Token {
			return nil
		}
	}
	if lock.Remaining() == 0 {
		return p.fellOut(lock.Verify(ctx)) // while this host slept it was anybody's
	}
	whose := "free"
	if seen.State != multilock.StateFree {
		whose = "held by " + seen.Record.Holder.String()
	}
	return unsafef("this host was given the lock %q, and all the same it was %s", own.Name, whose)
}

// giveBack frees a lock, also if the trial was interrupted. It tries for the TTL of a
// trial, and then that is over, too: a v3 client of a busy NFS server with v4 clients
// has needed more than five seconds.
func giveBack(lock *multilock.Lock) error {
	ctx, cancel := context.WithTimeout(context.Background(), ttl)
	defer cancel()
	return lock.Release(ctx)
}

// readClock says how many seconds this host's clock is ahead of the source's, nil if
// that has none. One that cannot be read was a finding before.
func (p place) readClock(ctx context.Context) (*float64, error) {
	keeper, ok := source.Ability[source.Timekeeper](p.Locks, source.TraitOneClock)
	if !ok {
		return nil, nil
	}
	before := time.Now()
	now, err := bounded.Call(ctx, keeper.Now)
	if err != nil {
		return nil, context.Cause(ctx)
	}
	ahead := before.Add(time.Since(before) / 2).Sub(now).Round(time.Millisecond).Seconds()
	return &ahead, nil
}

// tidyings is how often a trial is tidied up after: what NFS leaves of a file that was
// open when it was removed is gone a moment later.
const tidyings = 3

// tidy clears away what participants left who died: now, or in an earlier trial of
// which nobody was left. A holder that lives keeps its lock. What takes too long is
// left to whoever uses the locks next: it is in nobody's way.
func (p place) tidy(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, 2*p.ttl)
	defer cancel()
	for range tidyings {
		left, err := p.tidyOnce(limited)
		if err == nil && left {
			err = bounded.Sleep(limited, p.pause)
		}
		switch {
		case limited.Err() != nil:
			return context.Cause(ctx)
		case err != nil || !left:
			return err
		}
	}
	return nil
}

// tidyOnce says whether something was there that nobody held.
func (p place) tidyOnce(ctx context.Context) (left bool, err error) {
	names, err := bounded.Call(ctx, p.Locks.Names)
	if err != nil {
		return false, err
	}
	for _, name := range names {
		if _, _, ok := p.cutSeat(name); !ok && name != p.Name {
			continue
		}
		switch unheld, err := p.clear(ctx, name); {
		case errors.Is(err, fs.ErrPermission): // another user's, who died
		case err != nil && !errors.Is(err, multilock.ErrHeld) && !errors.Is(err, multilock.ErrFree):
			return false, err
		default:
			left = left || unheld
		}
	}
	return left, nil
}

// clear breaks a lock whose holder is dead, and removes what a release may have left
// of one that nobody holds: then unheld is true.
func (p place) clear(ctx context.Context, name string) (unheld bool, err error) {
	seen, err := p.inspect(ctx, name)
	switch {
	case err != nil:
		return false, err
	case seen.State == multilock.StateFree || seen.Limbo:
		if group, ok := source.Ability[source.Group](p.Locks, source.TraitCheapBarrier); ok {
			_, err = bounded.Call(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, group.Tidy(ctx, name) })
		}
		return true, err
	case seen.State == multilock.StateSuspect || seen.State == multilock.StateDead:
		_, err = multilock.Break(ctx, p.Locks, name, multilock.BreakOptions{Token: seen.Record.Token})
	}
	return false, err
}

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
