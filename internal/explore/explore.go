// Package explore runs real code against a simulated NFS server in every order, for tests.
//
// Actors are goroutines in a testing/synctest bubble that stop before each request; one at a time
// continues, in the order of a schedule. Time only passes when all actors sleep, so an hour costs nothing,
// and the code under test needs no hooks: it uses the bubble's clocks.
//
// A schedule is a list of choices: which actor continues, and the fate of its request. The default, 0,
// means that the same actor continues without a fault. So a schedule is given by the few choices that
// differ, which a failure prints, and [Scenario.Replay] accepts.
package explore

import (
	"slices"
	"sync"
	"time"

	"github.com/multilock/go/internal/simnfs"
)

// Scenario is the actors' programs, and the bounds of the exploration.
type Scenario struct {
	Actors []Program
	Mount  simnfs.Options
	// Prepare is the earlier history of each actor: its requests have no choices. May be nil.
	Prepare func(a *Actor)
	// Alike is how many of the first actors differ only in their names. Schedules in which they change
	// places are equal, so of those that have not begun only the first begins. They must have the same
	// cache for that, so after Prepare all mount the directory again, and Remembers is what they do
	// before they begin, without changes.
	Alike     int
	Remembers func(a *Actor)
	// Preemptions is how often an actor may be left for another one although it could continue; Faults,
	// of the given Kinds, is how many requests may meet one. Of actors that wake or begin at the same
	// time any may run first for free; with InTurn the first of the Actors does, and another choice is
	// a preemption, too.
	Preemptions, Faults int
	InTurn              bool
	Kinds               []Fate
	// Pause is how long an actor pauses: longer than any TTL. Nap is shorter.
	Pause, Nap time.Duration
	// Down is how long a server that forgets is down.
	Down time.Duration
	// Delay is the delay of a late request, Pause if 0. Grace is how long a restarted server rejects
	// opens, renames and removals.
	Delay, Grace time.Duration
	// Serves configures the server. If nil, it keeps exact times, and its rename replaces an empty
	// directory.
	Serves func(*simnfs.Server)
	// Whole makes the server's times look as if they had whole seconds, at the times of the grid.
	Whole bool
	// Grid rounds wake-ups up, so that those that could coincide do.
	Grid time.Duration
	// Looks means that actors only read clocks by [Actor.Now] and [Actor.Looks], in this package, and
	// through their clients' caches. Then a pause after a request is only played if the actor reads a clock
	// before its next request: otherwise a pause before that request is equivalent. It has no effect if
	// an actor has Threads.
	Looks bool
	// Private reports which requests no other actor can observe; if nil, none. They have no choice.
	Private func(simnfs.Request) bool
	// Remember continues from no state twice, and skips equivalent orders: see the comments at arrival and
	// at node. The scenario's checks may excuse more after more faults, and no less.
	Remember bool
	// EveryOrder also plays equivalent orders, which Remember skips unless an actor has Threads.
	EveryOrder bool
	// Workers is the number of schedules that are played at the same time; 0 means 1.
	Workers int
	// Most limits the requests of one schedule; a longer one is stuck.
	Most int
	// Owns checks, after each request that changes something, that the server has the lock on which an
	// actor relies. It returns what is wrong. May be nil.
	Owns func(w *World, a *Actor) (wrong string)
	// Always checks the whole world in the same way. May be nil.
	Always func(w *World) (wrong string)
	// Excuses returns the past as far as it matters for checks: see [Past]. With it, times only count
	// relative to now, and states that differ in nothing else are equal. The checks and the actors must
	// then depend on nothing else in the past, and on no time of day. Without it checks may depend on all
	// faults so far, and on the time.
	Excuses func(w *World) Past
	// Ages reports, by the path at which an object was created, whether any actor reads its times other
	// than right after changing it; if nil, of all objects. It is used with Excuses.
	Ages func(made string) bool
	// Facts returns a new value for a run's notes, for use in checks. May be nil.
	Facts func() any
	// Lax allows two actors to rely on a lock at the same time.
	Lax bool
	// AtEnd checks the state when all actors have ended. May be nil.
	AtEnd func(w *World)

	fields sync.Map // fields by type, for digests
}

// Program is an actor's program, on a host of its own or, if Host is set, on a host that may be shared.
type Program struct {
	Name string
	Host string
	Run  func(a *Actor)
	// Threads means that several of its goroutines make requests, through [Actor.FS]. Its host must be
	// its own.
	Threads bool
}

// threads reports whether any actor has several goroutines.
func (sc *Scenario) threads() bool {
	return slices.ContainsFunc(sc.Actors, func(p Program) bool { return p.Threads })
}

// Fate is what happens to a request.
type Fate int

// The fates.
const (
	Answered  Fate = iota
	Crash          // the actor ends before it
	Pause          // the actor pauses before it
	Slow           // the actor pauses after it
	Nap            // the actor naps before it
	Doze           // the actor naps after it
	Jump           // the server's clock is set forward before it, by ten pauses
	Forgets        // the server crashes before it, and loses recent changes, as with async
	Away           // the server is down for a nap from here on, and then has its grace period
	AwayAhead      // as Away, and afterwards its clock is ten pauses ahead
	Lost           // executed, and answered EIO
	Failed         // not executed, and answered EIO
	Twice          // executed twice, and answered the second time
	Again          // as Twice, with a nap in between: a server that restarted has lost its reply cache
	Late           // answered EIO, and executed after a pause
	Refused        // a rename is executed, and its repetition fails on a server that checks the target first
)

func (f Fate) String() string {
	return [...]string{"", "CRASH", "PAUSE", "SLOW", "NAP", "DOZE", "JUMP", "FORGETS", "AWAY", "AWAY", "LOST", "FAILED", "TWICE", "AGAIN", "LATE", "REFUSED"}[f]
}

// onlyChanges reports whether a fate only makes a difference for requests that change something. Other
// requests are repeated by the client, and their result is cached, as after a pause. Their permanent failure
// is not played.
func (f Fate) onlyChanges() bool { return f >= Lost }
