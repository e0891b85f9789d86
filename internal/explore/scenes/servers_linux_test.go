package scenes_test

import (
	"testing"
	"time"

	"github.com/multilock/go/internal/explore"
	"github.com/multilock/go/internal/explore/locks"
	"github.com/multilock/go/internal/simnfs"
	"github.com/multilock/go/multilock/source"
)

// A server with an async export loses acknowledged changes in a crash. There may be two holders until the
// next heartbeat that begins after the crash, which finds the loss.
// Rule: I1, I2, heartbeat
func TestExploreForgetfulServer(t *testing.T) {
	t.Parallel()
	sc := contest(func(a *explore.Actor) { contendsFor(a, 3) }, contends)
	sc.Kinds, sc.Owns, sc.AtEnd, sc.Lax, sc.Down = []explore.Fate{explore.Forgets}, nil, nil, true, exploreBeat/2
	for _, sc.Whole = range []bool{false, true} {
		explored(t, sc, 2, 1)
		if *long {
			sc.Preemptions, sc.Faults = 1, 2
			proven(t, sc.Exhaust(t, 10*time.Minute))
		}
	}
}

// A server with times in whole seconds shows no change within one second: a client continues to use its
// cached name.
// Rule: coarse-times, stale-names, I1, I2
func TestExploreCoarse(t *testing.T) {
	t.Parallel()
	coarse := func(s *simnfs.Server) { s.Tick = time.Second }
	sc := contest(contends, contends)
	sc.Serves = coarse
	explored(t, sc, 2, 0)
	alone := contest(contends)
	alone.Serves, alone.Private, alone.Preemptions, alone.Faults = coarse, nil, 0, 2
	alone.Kinds = []explore.Fate{explore.Lost, explore.Failed}
	proven(t, alone.Exhaust(t, 10*time.Minute))
}

// A server that restarts is down for a while, during which a holder's lock stays valid, and then rejects
// opens, renames and removals for a while; its clock may have been wrong before. A holder that was cut off
// together with all others is not dead.
// Rule: I1, I2, silence
func TestExploreRestart(t *testing.T) {
	t.Parallel()
	sc := contest(func(a *explore.Actor) { contendsFor(a, 3) }, contends)
	sc.Kinds, sc.Nap, sc.Grace = []explore.Fate{explore.Away, explore.AwayAhead}, 5*exploreBeat, 2*exploreBeat
	explored(t, sc, 2, 1)
	private := sc.Private
	sc.Nap, sc.Grace, sc.Private, sc.Preemptions, sc.Faults = 4*exploreBeat, 0, nil, 0, 1
	sc.Actors[0].Run = func(a *explore.Actor) { contendsFor(a, 16) } // until the clock is read again
	proven(t, sc.Exhaust(t, 10*time.Minute))
	whole := sc.Kinds
	sc.Kinds, sc.Preemptions = []explore.Fate{explore.AwayAhead}, 1
	sc.Private = func(r simnfs.Request) bool { return r.Path != "/.multilock/staging" && (private(r) || !r.Changes) }
	proven(t, sc.Exhaust(t, 10*time.Minute)) // it is down while its clock is read
	sc.Kinds, sc.Private, sc.Preemptions = whole, nil, 0
	sc.Actors[1].Run = drowses
	proven(t, sc.Exhaust(t, 10*time.Minute))
}

// drowses inspects the holder more rarely than the holder sends heartbeats, so it has not watched the earlier
// ones.
func drowses(a *explore.Actor) {
	c, err := contender(a)
	if err != nil {
		a.World().Violate("contend: %v", err)
		return
	}
	contendsWith(a, c, 4*exploreBeat-time.Second/2, func(lease source.Lease) { givesSigns(a, lease, 1) })
}

// looksOften inspects the lock, and then, when the server's clock will soon be read again, twice per
// heartbeat.
func looksOften(a *explore.Actor) {
	o, err := observer(a)
	for looks := range 10 {
		a.Sleep(exploreBeat / 2)
		if err == nil {
			locks.Breaks(a, o)
		}
		if looks == 0 {
			a.Sleep(12 * exploreBeat)
		}
	}
}

// A server is down for less than a heartbeat interval, just when its clock is to be read again, and comes
// back with a clock that is ahead. A holder that was cut off together with all others is not dead, even if
// a watcher has missed only one sample, which is late and not missing.
// Rule: silence, server-clock
func TestExploreSlowSample(t *testing.T) {
	t.Parallel()
	sc := contest(func(a *explore.Actor) { contendsFor(a, 16) }, looksOften)
	sc.Kinds, sc.Nap, sc.Preemptions, sc.Faults = []explore.Fate{explore.AwayAhead}, exploreBeat-exploreBeat/16, 1, 1
	sc.Private = func(r simnfs.Request) bool { return r.Path != "/.locks/lock" }
	proven(t, sc.Exhaust(t, 10*time.Minute))
}

// A server that restarts loses its reply cache: a request whose reply was lost is executed once more, a while
// later, after other actors may have acted.
// Rule: I1, I4, outcome
func TestExploreAgain(t *testing.T) {
	t.Parallel()
	again := []explore.Fate{explore.Again}
	sc := contest(contends, contends)
	sc.Kinds, sc.Preemptions, sc.Faults = again, 1, 1
	proven(t, sc.Exhaust(t, 10*time.Minute))
	for _, second := range []func(*explore.Actor, source.Lease){commits, forgets, replaces} {
		sc := sceneOf(commits, second)
		sc.Kinds, sc.Always, sc.Preemptions, sc.Faults = again, keepsResults, 0, 1
		proven(t, sc.Exhaust(t, 10*time.Minute))
	}
}

// On a filesystem that only one kernel uses nothing is cached, and no reply is lost.
// Rule: I1, I2, I3
func TestExploreLocal(t *testing.T) {
	t.Parallel()
	sc := contest(contends, contends, looksOn)
	for i := range sc.Actors {
		sc.Actors[i].Host = "one"
	}
	sc.Mount = simnfs.Options{Local: true}
	sc.Kinds = []explore.Fate{explore.Crash, explore.Pause, explore.Slow, explore.Nap, explore.Doze}
	sc.Preemptions, sc.Faults = 1, 0
	proven(t, sc.Exhaust(t, 10*time.Minute))
	sc.Actors = sc.Actors[:2]
	explored(t, sc, 2, 0)
}

// BeeGFS and SMB replace no directory, not even an empty one: it is removed first.
// Rule: rename, I3
func TestExploreReplacesNothing(t *testing.T) {
	t.Parallel()
	sc := contest(contends, contends)
	sc.Serves = func(s *simnfs.Server) { s.ReplacesNothing = true }
	explored(t, sc, 2, 0)
}
