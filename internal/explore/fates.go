package explore

import "github.com/multilock/go/internal/simnfs"

// trail is what an actor has left where others may find it, in one schedule.
type trail struct {
	changes int        // by requests that change something
	opens   simnfs.Sum // what is open to its host
	notes   simnfs.Sum // what the scenario notes
}

// sameAs says that a fate comes to the same as another that is tried, or as none.
//
// An actor that crashes before a request leaves what it would have left by a crash before an earlier
// one, if it has changed nothing, and has the same open, since. What others do in between they may do
// after that crash, for nobody can tell the difference, and at no more preemptions: some are not needed
// to let the actor go on. What it knew is forgotten either way, for it has its host to itself.
// What it believed meanwhile is compared with the belief of others, and with the server, in the
// schedule without the crash, where nothing more is excused.
//
// That a touch is carried out twice at one time makes no difference: the second leaves the times of the
// first, and of the directory a client of version 4 remembers nothing else.
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

// shares says that an actor's host is that of others, too.
func (a *Actor) shares() bool {
	for _, b := range a.world.actors {
		if b != a && b.Client == a.Client {
			return true
		}
	}
	return false
}
