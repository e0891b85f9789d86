package scenes_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/multilock/go/internal/explore"
	"github.com/multilock/go/internal/explore/locks"
	"github.com/multilock/go/multilock/cooklock"
	"github.com/multilock/go/multilock/source"
)

// period is the period of the cooking locks: shorter than a pause, and longer than a nap.
const period = locks.TTL

// cell is a shared register with all its values so far.
type cell struct{ values [][]byte }

// cellOf is an actor's view of the register. The result of a failed request is in doubt.
type cellOf struct{ actor *explore.Actor }

func (c cellOf) Swap(_ context.Context, v []byte) (old []byte, n uint64, err error) {
	cell := c.actor.World().Facts.(*cell)
	err = c.actor.Ask("swap", "register", true, func() error {
		old, n = cell.now()
		cell.values = append(cell.values, v)
		return nil
	})
	if err != nil {
		return nil, 0, errors.Join(source.ErrUnsure, err)
	}
	return old, n + 1, nil
}

func (c cellOf) Peek(context.Context) (v []byte, n uint64, err error) {
	err = c.actor.Ask("peek", "register", false, func() error {
		v, n = c.actor.World().Facts.(*cell).now()
		return nil
	})
	return v, n, err
}

func (c *cell) now() ([]byte, uint64) {
	if len(c.values) == 0 {
		return nil, 0
	}
	return c.values[len(c.values)-1], uint64(len(c.values))
}

// cooks acquires a cooking lock on some register, and holds it until its end, or for a moment.
func cooks(open func(*explore.Actor) cooklock.Options, stays bool) func(*explore.Actor) {
	return func(a *explore.Actor) {
		opt := open(a)
		opt.Period = period
		opt.Self, _ = locks.WhoWeAre()
		src, err := cooklock.New(opt)
		if err != nil {
			a.World().Violate("open: %v", err)
			return
		}
		c, err := src.Contend(context.Background(), "lock", locks.Claim, source.StalePolicy{})
		if err != nil {
			a.World().Violate("contend: %v", err)
			return
		}
		for !a.Gone() {
			lease, err := c.Try(context.Background())
			if a.Note("try: %v", err); err == nil {
				hasCooked(a, lease.(source.Timed), stays)
				return
			}
			seen, err := c.Look(context.Background())
			a.Note("look: %v, %s: %v", seen.State, seen.Why, err)
			a.Sleep(max(seen.Next, exploreBeat))
		}
	}
}

// hasCooked relies on the lock until its time is over, or until it is released.
func hasCooked(a *explore.Actor, lease source.Timed, stays bool) {
	left := -lease.Ends().Elapsed()
	a.Believe(time.Now().Add(left))
	if stays {
		a.Sleep(max(left, 0))
	}
	a.Believe(time.Time{})
	err := lease.Release(context.Background())
	a.Note("released: %v", err)
}

// onCells uses registers in memory that guarantee no more than a register must: a swap takes effect at most
// once, possibly late.
func onCells(stays ...bool) *explore.Scenario {
	sc := contest()
	sc.Looks, sc.InTurn = false, true
	for i, stays := range stays {
		sc.Actors = append(sc.Actors, explore.Program{Name: string(rune('A' + i)), Run: cooks(func(a *explore.Actor) cooklock.Options {
			return cooklock.Options{Open: func(string) (cooklock.Register, error) { return cellOf{a}, nil }}
		}, stays)})
	}
	sc.Facts, sc.Prepare, sc.Owns, sc.AtEnd, sc.Remember = func() any { return &cell{} }, nil, nil, cookedInTime, false
	sc.Kinds = []explore.Fate{explore.Crash, explore.Pause, explore.Slow, explore.Nap, explore.Doze, explore.Lost, explore.Failed, explore.Late}
	sc.Delay = period + exploreBeat // when other actors may have watched for long enough
	return sc
}

// cookedInTime checks that no actor waits longer than each lock and each fault requires.
func cookedInTime(w *explore.World) {
	turns := len(w.Actors()) + len(w.Met())
	if late := w.Elapsed() - time.Duration(turns)*(2*period+2*exploreBeat) - time.Duration(len(w.Met()))*w.Pause(); late > 0 {
		w.Violate("I3: it took %s too long", late)
	}
}

// No two actors hold a cooking lock at a time, whichever is suspended, and whatever happens to its swap.
// Rule: none (docs/internals/cooking.md)
func TestExploreCook(t *testing.T) {
	t.Parallel()
	sc := onCells(true, true)
	sc.Preemptions, sc.Faults = 1, 1
	if *long {
		sc.Preemptions, sc.Faults = 2, 2
	}
	proven(t, sc.Exhaust(t, 10*time.Minute))
	sc = onCells(true, false, true)
	sc.Preemptions, sc.Faults = 5, 3
	proven(t, sample(t, sc, 500))
}

// The same with results in a directory: a swap is a lock, and a result that is recorded under it.
// Rule: commit, outcome, silence
func TestExploreCookOnLedger(t *testing.T) {
	t.Parallel()
	onLedger := func(a *explore.Actor) cooklock.Options {
		src, err := locks.Source(a)
		if err != nil {
			a.World().Violate("open: %v", err)
		}
		return cooklock.Options{Ledger: src}
	}
	sc := threaded(cooks(onLedger, true), cooks(onLedger, false))
	sc.Owns, sc.AtEnd = nil, cookedInTime
	playedThreads(t, sc)
}
