package explore

import "github.com/multilock/go/internal/simnfs"

// trail is what an actor has left in one schedule where other actors may find it.
type trail struct {
	changes int        // number of requests that change something
	opens   simnfs.Sum // what its host has open
	notes   simnfs.Sum // the scenario's facts
}

// sameAs reports whether a fate has the same effect as another one that is tried, or as none.
//
// A crash before a request leaves the same state as a crash before an earlier request, if the actor has
// changed nothing since, and has the same files open. Other actors can do after the earlier crash what they
// do in between, because they cannot distinguish the two, with no more preemptions: some are no longer
// needed to let the actor continue. The actor's cache is lost in both cases, because the host is its own.
// Whether it relied on a lock in between is compared with other actors and the server in the schedule
// without the crash, where no more is excused.
//
// A touch that is executed twice at one time makes no difference: the second one leaves the times of the
// first, and a version 4 client caches nothing else of the directory.
func (w *World) sameAs(c *call, kind Fate) bool {
	if w.states == nil || w.threads || w.scenario.EveryOrder {
		return false
	}
	switch a := c.actor; kind {
	case Crash:
		left := trail{a.changes, a.Opened(), w.digest(w.Facts)}
		if a.shares() {
			return false
		}
		at, known := a.trails[left]
		if !known {
			at = w.steps
			a.trails[left] = at
		}
		return at != w.steps
	case Twice:
		return c.request.Kind == "touch" && w.scenario.Mount.V4 && w.Server.Tick == 0
	}
	return false
}

// shares reports whether an actor shares its host.
func (a *Actor) shares() bool {
	for _, b := range a.world.actors {
		if b != a && b.Client == a.Client {
			return true
		}
	}
	return false
}
