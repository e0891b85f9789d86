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
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/multilock/go/internal/simnfs"
)

// Scenario is who does what, and how far it is explored.
type Scenario struct {
	Actors []Program
	Mount  simnfs.Options
	// Prepare is what each actor has done before: no request of it is a choice. May be nil.
	Prepare func(a *Actor)
	// Preemptions are how often an actor may be left for another that could have gone on;
	// Faults, of the given Kinds, how often a request may meet one.
	Preemptions, Faults int
	Kinds               []Fate
	// Pause is how long somebody stands still who does: longer than any TTL. Nap is shorter.
	Pause, Nap time.Duration
	// Delay is how late a late request is carried out; 0 is a pause. Grace is for how long a
	// server that comes back lets nobody open, rename or remove anything.
	Delay, Grace time.Duration
	// Grid is what wake-ups are rounded up to: those who could meet do.
	Grid time.Duration
	// Private says of which requests nobody else learns; nil: of none. There is no choice.
	Private func(simnfs.Request) bool
	// Remember goes on from no state twice: from one that was come to in another way, with
	// the same faults and no more preemptions, all that can follow has been or will be seen.
	Remember bool
	// Workers play at the same time; 0 is one.
	Workers int
	// Most bounds one schedule: what takes more requests is stuck.
	Most int
	// Owns says whether the server has what an actor believes to have, as it must after each
	// request that changes something; nil: it is not asked. What it gives tells what is wrong.
	Owns func(w *World, a *Actor) (wrong string)
	// Always is asked the same of the world as a whole; nil: nothing.
	Always func(w *World) (wrong string)
	// Facts makes what a run notes for such questions; nil: nothing.
	Facts func() any
	// Lax lets two believe at the same time.
	Lax bool
	// AtEnd checks what is left when all have ended; nil: nothing.
	AtEnd func(w *World)
}

// Program is what an actor does, on a host of its own or, if it is named, on one that it shares
// with others.
type Program struct {
	Name string
	Host string
	Run  func(a *Actor)
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
	Late           // answered EIO, and carried out after a pause
	Refused        // a rename is carried out, and its repetition refused by a server that looks at the target first
)

func (f Fate) String() string {
	return [...]string{"", "CRASH", "PAUSE", "SLOW", "NAP", "DOZE", "JUMP", "FORGETS", "AWAY", "AWAY", "LOST", "FAILED", "TWICE", "LATE", "REFUSED"}[f]
}

// onlyChanges says of which fates only requests can tell that change something.
func (f Fate) onlyChanges() bool { return f >= Lost }

// World is one run of a scenario.
type World struct {
	Server *simnfs.Server
	Facts  any // of the scenario

	scenario  *Scenario
	schedule  schedule
	actors    []*Actor
	last      *Actor
	mu        sync.Mutex // guards what actors write when they come to a gate
	arrived   chan struct{}
	late      chan func() // requests that are carried out now
	began     time.Time
	ahead     time.Duration // of the server's clock
	back      time.Time     // when the server is, if it is away
	fell      time.Time     // when somebody crashed last
	lines     []line
	met       []Fate
	delayed   map[*time.Timer]simnfs.Sum // requests that are carried out late
	labels    map[string]string          // of tokens
	states    *states
	known     bool // it has come to a state that was seen before
	steps     int
	order     strings.Builder
	violation string
	over      bool
}

// Actor is one process on one host.
type Actor struct {
	*simnfs.Client
	Name, Host string
	// Has is what it believes to have, for [Scenario.Owns].
	Has string
	// Crashed says that it ended in the middle.
	Crashed bool

	world   *World
	column  int
	request simnfs.Request
	started bool
	waits   bool
	ended   bool
	resume  chan Fate
	until   time.Time // its belief
	learnt  simnfs.Sum
	tokens  int
}

// World is the one that the actor is in.
func (a *Actor) World() *World { return a.world }

// Sleep lets time pass.
func (a *Actor) Sleep(d time.Duration) {
	grid := max(a.world.scenario.Grid, 1)
	passed := time.Since(a.world.began) + d
	time.Sleep((passed+grid-1)/grid*grid - time.Since(a.world.began))
	a.gate(simnfs.Request{Kind: "wakes"}) // who wakes at the same time goes on one after the other
}

// Believe notes that the actor believes until then, a violation if another does.
func (a *Actor) Believe(until time.Time) {
	a.until = until
	if !a.Believes() {
		return
	}
	for _, b := range a.world.actors {
		if b != a && b.Believes() && !a.world.scenario.Lax {
			a.world.Violate("I1: %s and %s believe at the same time", b.Name, a.Name)
		}
	}
}

// Believes says whether it does now. Who has crashed does nothing any more.
func (a *Actor) Believes() bool { return !a.Crashed && time.Now().Before(a.until) }

// owned checks what others believe to have, when an actor has changed something.
func (w *World) owned(by *Actor, r simnfs.Request) {
	if !r.Changes {
		return
	}
	if w.scenario.Always != nil {
		if wrong := w.scenario.Always(w); wrong != "" {
			w.Violate("%s, since %s did: %s", wrong, by.Name, r)
		}
	}
	if w.scenario.Owns == nil {
		return
	}
	for _, a := range w.actors {
		if !a.Believes() {
			continue
		}
		if wrong := w.scenario.Owns(w, a); wrong != "" {
			w.Violate("I2: %s, since %s did: %s", wrong, by.Name, r)
		}
	}
}

// Note adds to the trace what an actor did or found.
func (a *Actor) Note(format string, args ...any) { a.world.note(a, fmt.Sprintf(format, args...)) }

// Met are the faults that requests have met so far.
func (w *World) Met() []Fate { return w.met }

// Pause is how long who stands still does.
func (w *World) Pause() time.Duration { return w.scenario.Pause }

// SinceCrash is the time since somebody crashed last.
func (w *World) SinceCrash() time.Duration { return time.Since(w.fell) }

// Elapsed is the time since everything began.
func (w *World) Elapsed() time.Duration { return time.Since(w.began) }

// Actors are all of them.
func (w *World) Actors() []*Actor { return w.actors }

// State tells states apart, as Remember does.
func (w *World) State() string { return strconv.FormatUint(uint64(w.state()), 16) }

// Order is who went on, in turn.
func (w *World) Order() string { return w.order.String() }

// Violate notes that something that must hold does not. The first counts.
func (w *World) Violate(format string, args ...any) {
	if w.violation == "" && !w.over {
		w.violation = fmt.Sprintf(format, args...)
		w.lines = append(w.lines, line{time.Since(w.began), 0, "VIOLATION " + w.violation})
	}
}

func (w *World) note(a *Actor, text string) {
	if !w.over {
		w.lines = append(w.lines, line{time.Since(w.began), a.column, text})
	}
}

// play runs a scenario by a schedule.
func (sc *Scenario) play(t *testing.T, s schedule, seen *states) (w *World) {
	synctest.Test(t, func(*testing.T) {
		w = &World{
			scenario: sc, schedule: s, states: seen, arrived: make(chan struct{}, 1), late: make(chan func(), 100),
			delayed: map[*time.Timer]simnfs.Sum{}, labels: map[string]string{}, began: time.Now(),
		}
		w.Server = simnfs.Serve(func() time.Time { return time.Now().Add(w.ahead) })
		w.Server.Forgets = slices.Contains(sc.Kinds, Forgets)
		if sc.Facts != nil {
			w.Facts = sc.Facts()
		}
		for i, program := range sc.Actors {
			w.mount(i, program)
		}
		for i, program := range sc.Actors {
			w.start(w.actors[i], program.Run)
		}
		for w.step() {
		}
		if w.violation == "" && !w.known && sc.AtEnd != nil {
			sc.AtEnd(w)
		}
		w.end()
	})
	return w
}

func (w *World) mount(column int, p Program) {
	a := &Actor{Name: p.Name, Host: cmp.Or(p.Host, p.Name), world: w, column: column, resume: make(chan Fate)}
	for _, b := range w.actors {
		if b.Host == a.Host {
			a.Client = b.Client
		}
	}
	if a.Client == nil {
		mount := w.scenario.Mount
		mount.Transport = w.transport
		a.Client = w.Server.Mount(mount)
	}
	a.learnt = simnfs.Sum(column) //nolint:gosec // a hash
	w.actors = append(w.actors, a)
	if w.scenario.Prepare != nil {
		w.last = a
		w.scenario.Prepare(a)
		w.last = nil
	}
}

func (w *World) start(a *Actor, run func(*Actor)) {
	a.started = true
	go func() {
		defer func() {
			w.mu.Lock()
			a.ended = true
			w.mu.Unlock()
			w.arrive()
		}()
		a.gate(simnfs.Request{Kind: "start"})
		run(a)
	}()
}

func (w *World) arrive() {
	select {
	case w.arrived <- struct{}{}:
	default:
	}
}

// gate waits for its turn.
func (a *Actor) gate(r simnfs.Request) Fate {
	a.world.mu.Lock()
	a.request, a.waits = r, true
	a.world.mu.Unlock()
	a.world.arrive()
	fate := <-a.resume
	a.learnt.AddTime(time.Now())
	if fate == Pause || fate == Slow || fate == Nap || fate == Doze { // of others the answer tells
		a.learnt.Add(uint64(fate)) //nolint:gosec // a hash
	}
	if fate == Crash {
		a.Crashed = true
		runtime.Goexit()
	}
	return fate
}

// transport is the way to the server of who goes on now: clients are those of hosts.
func (w *World) transport(r simnfs.Request, execute func() error) error {
	return w.last.transport(r, execute)
}

// transport is the actor's way to the server.
func (a *Actor) transport(r simnfs.Request, execute func() error) (err error) {
	if a.Crashed {
		return syscall.EIO // what is deferred does not happen any more
	}
	a.sees(r)
	if !a.started {
		return execute()
	}
	fate := a.gate(r)
	switch fate {
	case Pause:
		a.stand(a.world.scenario.Pause, "goes on with", r)
	case Nap:
		a.stand(a.world.scenario.Nap, "goes on with", r)
	}
	a.waitForServer(r)
	defer func() { a.Note("%s %s = %v", fate, r, err) }()
	switch fate {
	case Failed:
		return syscall.EIO
	case Lost:
		_ = a.Unheard(execute)
		return syscall.EIO
	case Twice:
		_ = a.Unheard(execute)
	case Refused:
		if r.Kind == "rename" && a.Unheard(execute) == nil {
			return syscall.ENOTEMPTY
		}
	case Late:
		a.delay(r, execute)
		return syscall.EIO
	}
	err = execute()
	a.world.owned(a, r)
	switch fate {
	case Slow:
		a.stand(a.world.scenario.Pause, "has the reply to", r)
	case Doze:
		a.stand(a.world.scenario.Nap, "has the reply to", r)
	}
	return err
}

// waitForServer stands still while it is away, or in its grace period.
func (a *Actor) waitForServer(r simnfs.Request) {
	for {
		until := a.world.back
		if slices.Contains([]string{"make", "create", "open", "rename", "unlink", "rmdir"}, r.Kind) {
			until = until.Add(a.world.scenario.Grace)
		}
		if !time.Now().Before(until) {
			return
		}
		a.stand(time.Until(until), "is let through with", r)
	}
}

// delay has a request carried out after a pause.
func (a *Actor) delay(r simnfs.Request, execute func() error) {
	w, sent := a.world, a.learnt
	var timer *time.Timer
	timer = time.AfterFunc(cmp.Or(w.scenario.Delay, w.scenario.Pause), func() {
		w.late <- func() {
			delete(w.delayed, timer)
			a.Note("carried out late: %s = %v", r, a.Unheard(execute))
			w.owned(a, r)
		}
		w.arrive()
	})
	w.delayed[timer] = sent
}

// stand is to stand still.
func (a *Actor) stand(d time.Duration, then string, r simnfs.Request) {
	time.Sleep(d)
	a.gate(simnfs.Request{Kind: then + " " + r.String()})
}

// step lets one actor go on to its next request. It is false if all have ended, or something
// is wrong. Only while all stand still may it look at what they write.
func (w *World) step() bool {
	synctest.Wait()
	w.carryOut()
	if w.steps++; w.steps > w.scenario.Most {
		w.Violate("stuck: %d requests, and no end", w.steps)
	}
	ready, living := w.ready()
	for w.violation == "" && len(ready) == 0 {
		if !living && len(w.delayed) == 0 {
			return false
		}
		<-w.arrived // time passes
		synctest.Wait()
		w.carryOut()
		ready, living = w.ready()
	}
	if w.violation != "" || w.seenBefore(len(ready)) {
		return false
	}
	next := ready[0]
	if next != w.last || !w.private(next) {
		next = w.choose(ready)
	}
	fate := w.fate(next)
	w.last, next.waits = next, false
	w.order.WriteString(next.Name)
	switch fate {
	case Jump:
		w.ahead += 10 * w.scenario.Pause
	case Forgets:
		w.Server.Forget()
	case AwayAhead:
		w.ahead += 10 * w.scenario.Pause
		fallthrough
	case Away:
		w.back = time.Now().Add(w.scenario.Nap)
	}
	if fate == Crash {
		w.fell = time.Now()
		w.note(next, "CRASH before "+next.request.String())
	}
	next.resume <- fate
	return true
}

// seenBefore says that the schedule has come to a state from which another one goes on.
func (w *World) seenBefore(ready int) bool {
	if w.states == nil || w.schedule.repeats() || ready == 1 && w.schedule.faults >= w.scenario.Faults {
		return false
	}
	w.known = !w.states.comes(w.state(), w.schedule.preemptions)
	return w.known
}

// carryOut carries out the late requests whose time has come.
func (w *World) carryOut() {
	for len(w.late) > 0 {
		(<-w.late)()
	}
}

// ready are those who stand before a request, the last one first, and the others in turn.
func (w *World) ready() (ready []*Actor, living bool) {
	w.mu.Lock() // an actor that wakes has not heard of the scheduler since it fell asleep
	defer w.mu.Unlock()
	first := 0
	if w.last != nil {
		first = w.last.column
	}
	for i := range w.actors {
		a := w.actors[(first+i)%len(w.actors)]
		living = living || !a.ended
		if a.waits && !a.ended {
			ready = append(ready, a)
		}
	}
	return ready, living
}

func (w *World) private(a *Actor) bool {
	return w.scenario.Private != nil && w.scenario.Private(a.request)
}

func (w *World) choose(ready []*Actor) *Actor {
	cost := 0
	if ready[0] == w.last {
		cost = 1
		if w.schedule.preemptions >= w.scenario.Preemptions {
			return ready[0]
		}
	}
	pick := w.schedule.choose(len(ready), cost, 0)
	return ready[pick]
}

func (w *World) fate(a *Actor) Fate {
	if w.schedule.faults >= w.scenario.Faults || w.private(a) || a.request.Path == "" {
		return Answered
	}
	fates := []Fate{Answered}
	for _, kind := range w.scenario.Kinds {
		if a.request.Changes || !kind.onlyChanges() {
			fates = append(fates, kind)
		}
	}
	pick := w.schedule.choose(len(fates), 0, 1)
	if pick > 0 {
		w.met = append(w.met, fates[pick])
	}
	return fates[pick]
}

// end lets everybody crash who has not ended.
func (w *World) end() {
	w.over = true
	for {
		synctest.Wait()
		ready, living := w.ready()
		if !living {
			return
		}
		if len(ready) == 0 {
			<-w.arrived
			continue
		}
		ready[0].waits = false // one after the other: who crashes closes files that others know
		ready[0].resume <- Crash
	}
}
