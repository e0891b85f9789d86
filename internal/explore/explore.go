// Package explore runs real code against a simulated NFS server in every order, for tests.
//
// Actors are goroutines in a bubble of testing/synctest that stop before each request; one
// at a time goes on, as a schedule says. So no time passes but what an actor sleeps, an
// hour costs nothing, and the code under test needs no seams: its clocks are the bubble's.
//
// A schedule is a list of choices: who goes on, and what becomes of his request. The
// default, 0, is that the same actor goes on and nothing happens, so a schedule is told by
// the few choices that differ, which is what a failure prints, and what [Scenario.Replay]
// takes.
package explore

import (
	"slices"
	"sync"
	"time"

	"github.com/multilock/go/internal/simnfs"
)

// Scenario is who does what, and how far it is explored.
type Scenario struct {
	Actors []Program
	Mount  simnfs.Options
	// Prepare is what each actor has done before: no request of it is a choice. May be nil.
	Prepare func(a *Actor)
	// Alike says that the first so many actors differ in nothing but their names. Then each schedule in
	// which they change places is the same, and of those that have not begun only the first
	// begins. They must have the same memory for that, so after Prepare all mount the directory
	// anew, and Remembers is what they do before they begin: it changes nothing.
	Alike     int
	Remembers func(a *Actor)
	// Preemptions are how often an actor may be left for another that could have gone on;
	// Faults, of the given Kinds, how often a request may meet one. Who wakes, or begins, at the same time as others
	// may go on first or last for nothing; with InTurn the first of the Actors does, and it is a preemption,
	// too, if another does.
	Preemptions, Faults int
	InTurn              bool
	Kinds               []Fate
	// Pause is how long somebody stands still who does: longer than any TTL. Nap is shorter.
	Pause, Nap time.Duration
	// Down is for how long a server that forgets is away.
	Down time.Duration
	// Delay is how late a late request is carried out; 0 is a pause. Grace is for how long a
	// server that comes back lets nobody open, rename or remove anything.
	Delay, Grace time.Duration
	// Serves says what kind of a server it is; nil: one that keeps fine times, and has a rename
	// replace an empty directory.
	Serves func(*simnfs.Server)
	// Whole has the server's times look as if they had a step of seconds, at the times of the grid.
	Whole bool
	// Grid is what wake-ups are rounded up to: those who could meet do.
	Grid time.Duration
	// Looks says that actors look at clocks only by [Actor.Now] and [Actor.Looks], in this package, and by what their
	// clients remember. Then of those who stand still behind a request only those are played that
	// look at one before the next: others may as well stand still before that. It does not count where
	// somebody has Threads.
	Looks bool
	// Private says of which requests nobody else learns; nil: of none. There is no choice.
	Private func(simnfs.Request) bool
	// Remember goes on from no state twice, and leaves out orders that come to the same: see the
	// comments at arrival and at node. What the scenario checks may excuse more after more faults,
	// and no less.
	Remember bool
	// EveryOrder plays also what only comes to the same in another order, which Remember leaves out
	// but where somebody has Threads.
	EveryOrder bool
	// Workers play at the same time; 0 is one.
	Workers int
	// Most bounds one schedule: what takes more requests is stuck.
	Most int
	// Owns says whether the server has what an actor believes to have, as it must after each
	// request that changes something; nil: it is not asked. What it gives tells what is wrong.
	Owns func(w *World, a *Actor) (wrong string)
	// Always is asked the same of the world as a whole; nil: nothing.
	Always func(w *World) (wrong string)
	// Excuses says what the checks make of the past: see [Past]. With it, what happened when counts only
	// as how long ago that is, and states that differ in nothing else are one. The checks, and what
	// actors do, must then depend on nothing else that was, and on no time of day. nil: on the faults that
	// were met, whatever they were, and on how late it is.
	Excuses func(w *World) Past
	// Ages says of what is made at a path whether anybody asks for its times, but right when he changes it;
	// nil: of everything. It counts with Excuses.
	Ages func(made string) bool
	// Facts makes what a run notes for such questions; nil: nothing.
	Facts func() any
	// Lax lets two believe at the same time.
	Lax bool
	// AtEnd checks what is left when all have ended; nil: nothing.
	AtEnd func(w *World)

	fields sync.Map // of types, as digests are made of them
}

// Program is what an actor does, on a host of its own or, if it is named, on one that it shares
// with others.
type Program struct {
	Name string
	Host string
	Run  func(a *Actor)
	// Threads says that several goroutines of it make requests, which it does through
	// [Actor.FS]. Its host is its own.
	Threads bool
}

// threads says that somebody has several goroutines.
func (sc *Scenario) threads() bool {
	return slices.ContainsFunc(sc.Actors, func(p Program) bool { return p.Threads })
}

// Fate is what becomes of a request.
type Fate int

// The fates.
const (
	Answered  Fate = iota
	Crash          // the actor ends before it
	Pause          // it stands still before it
	Slow           // it stands still after it
	Nap            // it naps before it
	Doze           // it naps after it
	Jump           // the server's clock is set forward before it, by ten pauses
	Forgets        // the server crashes before it, and forgets what was done lately, as with async
	Away           // the server is away for a nap from here on, and then has its grace period
	AwayAhead      // the same, and when it is back its clock has been set forward by ten pauses
	Lost           // carried out, and answered EIO
	Failed         // not carried out, and answered EIO
	Twice          // carried out twice, and answered the second time
	Again          // the same, with a nap in between: a server that restarted has forgotten what it answered
	Late           // answered EIO, and carried out after a pause
	Refused        // a rename is carried out, and its repetition refused by a server that looks at the target first
)

func (f Fate) String() string {
	return [...]string{"", "CRASH", "PAUSE", "SLOW", "NAP", "DOZE", "JUMP", "FORGETS", "AWAY", "AWAY", "LOST", "FAILED", "TWICE", "AGAIN", "LATE", "REFUSED"}[f]
}

// onlyChanges says of which fates only requests can tell that change something: of others the client asks
// again, and what it remembers is the answer to that, as after a pause. That they fail for good is not played.
func (f Fate) onlyChanges() bool { return f >= Lost }
