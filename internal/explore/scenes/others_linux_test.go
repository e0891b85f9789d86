package scenes_test

import (
	"context"
	"testing"
	"time"

	"github.com/multilock/go/internal/explore"
	"github.com/multilock/go/internal/explore/locks"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

// forces breaks a live lock, as a person may.
func forces(a *explore.Actor) {
	c, err := contender(a)
	for forced := 0; err == nil && forced < 2; {
		seen, err := c.Look(context.Background())
		if err != nil || seen.State == source.StateFree {
			forced++
			continue
		}
		a.Note("FORCES: %v", c.Force(context.Background()))
		forced++
	}
}

// A contender that acquires a lock had it, and a holder whose release succeeds had it until then, even if
// another actor breaks it by force.
// Rule: I4, release, loss, rename
func TestExploreForce(t *testing.T) {
	t.Parallel()
	sc := contest(acquiresFor(exploreBeat), acquiresFor(time.Millisecond), forces)
	sc.Owns, sc.AtEnd, sc.Lax, sc.Faults = nil, nil, true, 0
	sc.Preemptions = 2
	for _, sc.Whole = range []bool{false, true} {
		proven(t, sc.Exhaust(t, 10*time.Minute))
	}
}

// acquiresFor tries once, and checks that no other lock is on the server when the acquisition is confirmed. A
// lock that was held only for a moment is released without a check.
func acquiresFor(held time.Duration) func(*explore.Actor) {
	return func(a *explore.Actor) { acquires(a, held) }
}

func acquires(a *explore.Actor, held time.Duration) {
	lease, err := triesOnce(a)
	if err != nil {
		return
	}
	a.Has = lease.Record().Token
	if there := locks.Holder(a.World(), "lock"); there != "" && there != a.Has {
		a.World().Violate("I4: %s is told that it has the lock, and another's is in place", a.Name)
	}
	a.Sleep(held)
	wrong := ownsTheLock(a.World(), a)
	err = lease.Release(context.Background())
	a.Note("released: %v", err)
	locks.Released(a, wrong, held, err)
}

// readsOn keeps the lock's file open for long, as a person who inspects it may.
func readsOn(a *explore.Actor) {
	a.Sleep(exploreBeat / 2)
	base, err := a.OpenDir("/")
	if err != nil {
		return
	}
	file, err := base.Open(".locks/lock/lock.locked")
	a.Note("reads: %v", err)
	a.Sleep(a.World().Pause())
	if err == nil {
		_ = file.Close()
	}
}

// A process on a waiter's host has a dead lock's file open: the lock still becomes free in time.
// Rule: I3, break
func TestExploreReader(t *testing.T) {
	t.Parallel()
	sc := contest(stays, func(a *explore.Actor) {
		contendsDoing(a, func(source.Lease) {
			if w := a.World(); w.Actors()[0].Crashed && w.SinceCrash() > exploreTTL+3*exploreBeat {
				w.Violate("I3: it took %s until the lock of who crashed was free", w.SinceCrash())
			}
		})
	}, readsOn)
	sc.Actors[1].Host, sc.Actors[2].Host = "two", "two"
	sc.Kinds, sc.Preemptions, sc.Faults = []explore.Fate{explore.Crash}, 0, 1
	proven(t, sc.Exhaust(t, 10*time.Minute))
}

// movesTheGroup moves the group, as a person who tidies up may.
func movesTheGroup(a *explore.Actor) {
	a.Sleep(exploreBeat)
	base, err := a.OpenDir("/")
	if err == nil {
		err = base.Rename(".locks", base, ".moved")
	}
	a.Note("moved: %v", err)
	a.World().Facts.(*moves).moved = err == nil
}

// moves is how many heartbeats succeeded after the group was moved.
type moves struct {
	moved     bool
	confirmed int
}

// staysWhere sends heartbeats, and counts those that succeed.
func staysWhere(a *explore.Actor) {
	lease, err := triesOnce(a)
	for range 12 {
		a.Sleep(exploreBeat)
		f := a.World().Facts.(*moves)
		if moved := f.moved; err == nil {
			if err = lease.Renew(context.Background()); err == nil && moved {
				f.confirmed++
			}
		}
		if a.Note("renewed: %v", err); f.confirmed > 7 {
			a.World().Violate("I1: eight heartbeats are confirmed after the group was moved")
		}
	}
}

// A group is moved with a lock in it: other actors find another lock there, so its holder notices by the
// eighth heartbeat.
// Rule: heartbeat, loss
func TestExploreMovedGroup(t *testing.T) {
	t.Parallel()
	sc := contest(staysWhere, movesTheGroup)
	sc.Owns, sc.AtEnd, sc.Lax = nil, nil, true
	sc.Facts = func() any { return &moves{} }
	explored(t, sc, 1, 0)
}

// triesOnce makes one attempt to acquire the lock.
func triesOnce(a *explore.Actor) (lease source.Lease, err error) {
	c, err := contender(a)
	if err == nil {
		lease, err = c.Try(context.Background())
	}
	a.Note("try: %v", err)
	return lease, err
}

// With Python peers, a lock's directory is created before the rename. A contender that then gets "held" finds
// its own lock. (A guard that remains from a half-failed release is cleared after ten seconds: no such
// request fails here.)
// Rule: python, I4
func TestExploreLegacyPeers(t *testing.T) {
	t.Parallel()
	beside := func(a *explore.Actor) {
		self, err := locks.WhoWeAre()
		if err != nil {
			a.World().Violate("who: %v", err)
			return
		}
		contendsAs(a, fslock.Options{Self: locks.OnHost(self, a.Host), LegacyPeers: true}, 1)
	}
	sc := contest(beside, beside)
	sc.Kinds = []explore.Fate{explore.Crash, explore.Pause, explore.Slow, explore.Nap, explore.Doze, explore.Lost, explore.Twice, explore.Refused}
	sc.AtEnd = allInTime
	explored(t, sc, 1, 0)
}
