package locks

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/multilock/go/internal/explore"
	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/source"
)

// Owner checks that an actor which relies on the lock owns it, and otherwise returns what the server has
// instead.
type Owner func(w *explore.World, a *explore.Actor) (wrong string)

// Contends acquires the lock, breaking it if its holder is dead, calls during, and releases it. It rests
// after each inspection of the holder, if rest is positive.
func (owns Owner) Contends(a *explore.Actor, c source.Contender, rest time.Duration, during func(source.Lease)) {
	for !a.Gone() {
		lease, err := c.Try(context.Background())
		switch {
		case err == nil:
			a.Note("ACQUIRED")
			owns.Holds(a, lease, during)
			return
		case errors.Is(err, source.ErrHeld):
			if pause := Breaks(a, c); pause+rest > 0 {
				a.Rest(pause+rest, "contends", c)
			}
		default:
			a.Note("try: %v", err)
			if a.Unsaid == "rename" && len(a.World().Met()) == 1 && a.World().Server.Tick == 0 {
				a.World().Violate("I4: %s is not told that it has the lock, for one reply was lost: %v", a.Name, err)
			}
			a.Rest(Beat/2, "contends", c)
		}
	}
}

// SomeoneWasSilent reports whether a lock may have to be broken: one lost reply is no reason.
func SomeoneWasSilent(w *explore.World) bool {
	brief := []explore.Fate{explore.Lost, explore.Failed, explore.Twice, explore.Late}
	return len(w.Met()) > 1 || len(w.Met()) == 1 && !slices.Contains(brief, w.Met()[0])
}

// Left reports whether a lock has left more than an empty directory. For a lock outside of the file system
// it returns true.
func Left(w *explore.World) bool {
	names := w.Server.Names()
	return len(names) == 0 || slices.ContainsFunc(names, func(path string) bool { return strings.HasPrefix(path, ".locks/lock/") })
}

// Breaks inspects the holder, breaks a dead holder's lock, and returns how long to rest after that.
func Breaks(a *explore.Actor, c source.Observer) time.Duration {
	seen, err := c.Look(context.Background())
	switch {
	case err != nil:
		a.Note("look: %v", err)
		return Beat / 2
	case seen.State == source.StateDead:
		a.Note("BREAKS: %s", seen.Why)
		if Left(a.World()) && !SomeoneWasSilent(a.World()) {
			a.World().Violate("I3: %s breaks a lock, and nobody was silent: %s", a.Name, seen.Why)
		}
		if len(a.World().Actors()) == 1 {
			a.World().Violate("I3: %s takes itself for a holder that is dead: %s", a.Name, seen.Why)
		}
		if err := c.Break(context.Background()); err != nil {
			a.Note("break: %v", err)
			return Beat / 2
		}
		return 0
	case seen.State == source.StateFree:
		return time.Millisecond
	}
	return min(max(seen.Next, time.Second), Beat)
}

// believes makes the actor rely on the lock until its validity ends.
func believes(a *explore.Actor, since boottime.Instant) {
	a.Believe(time.Now().Add(Claim.Tenure() - a.Now().Since(since)))
}

// GivesSigns sends heartbeats as long as the actor relies on the lock: the core's keeper treats the lock as
// lost after that.
//
// A heartbeat that begins after a server has lost the lock must fail. One that was in progress may succeed,
// like one that succeeded just before: what it had checked by then was right. The next one begins later.
func (owns Owner) GivesSigns(a *explore.Actor, lease source.Lease, signs int) {
	for left := range signs {
		a.Rest(Beat, "holds", lease, signs-left)
		start, forgot := a.Now(), forgotten(a.World())
		if !a.Believes() {
			return
		}
		err := lease.Renew(context.Background())
		a.Note("renewed: %v", err)
		if wrong := owns(a.World(), a); forgot > 0 && forgot == forgotten(a.World()) && err == nil && wrong != "" {
			a.World().Violate("I1: a heartbeat is confirmed, and %s", wrong)
		}
		if errors.Is(err, source.ErrLost) {
			return
		}
		a.Looks()
		if err == nil && a.Believes() {
			believes(a, start)
		}
	}
}

// forgotten returns how often a server has lost recent changes.
func forgotten(w *explore.World) (times int) {
	for _, fate := range w.Met() {
		if fate == explore.Forgets {
			times++
		}
	}
	return times
}

// Holds calls during with the lock held, sends heartbeats, and releases the lock.
func (owns Owner) Holds(a *explore.Actor, lease source.Lease, during func(source.Lease)) {
	a.Has = lease.Record().Token
	since := time.Now()
	believes(a, lease.Since())
	during(lease)
	a.Believe(time.Time{})
	wrong := owns(a.World(), a)
	if forgotten(a.World()) > 0 {
		wrong = "" // it may be where it was staged again
	}
	for range 5 {
		err := lease.Release(context.Background())
		a.Note("released: %v", err)
		Released(a, wrong, time.Since(since), err)
		if err == nil || errors.Is(err, source.ErrLost) || errors.Is(err, source.ErrReleased) || errors.Is(err, source.ErrUnsure) {
			return
		}
		a.Sleep(Beat / 2)
	}
}

// Released compares the result of a release with what was wrong before it. It need not be exact for a lock
// that was held only for a moment.
func Released(a *explore.Actor, wrong string, held time.Duration, err error) {
	unheard := func(f explore.Fate) bool { return f >= explore.Lost }
	switch {
	case wrong == "" && errors.Is(err, source.ErrLost) && !SomeoneWasSilent(a.World()):
		a.World().Violate("I4: a release says that the lock was lost, and nobody could take it: %v", err)
	case wrong == "":
	case err == nil:
		a.World().Violate("I4: a release says that the lock was held, and %s", wrong)
	case errors.Is(err, source.ErrUnsure) && held >= Beat && !slices.ContainsFunc(a.World().Met(), unheard):
		a.World().Violate("I4: a release cannot tell, and could: %s", wrong)
	}
}
