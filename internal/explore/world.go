package explore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/multilock/go/internal/simnfs"
)

// World is one run of a scenario.
type World struct {
	Server *simnfs.Server
	Facts  any // of the scenario

	scenario  *Scenario
	schedule  schedule
	actors    []*Actor
	last      *Actor
	mu        sync.Mutex // guards what actors write when they come to a gate
	closed    []func()   // what is to be closed before anybody goes on: see threads.go
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
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.violation == "" && !w.over {
		w.violation = fmt.Sprintf(format, args...)
		w.lines = append(w.lines, line{time.Since(w.began), 0, "VIOLATION " + w.violation})
	}
}

func (w *World) note(a *Actor, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
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
			w.start(w.actors[i], program)
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
	a := &Actor{Name: p.Name, Host: cmp.Or(p.Host, p.Name), world: w, column: column, threads: p.Threads}
	for _, b := range w.actors {
		if b.Host == a.Host {
			a.Client = b.Client
		}
	}
	if a.Client == nil {
		mount := w.scenario.Mount
		mount.Transport = w.transport
		if p.Threads {
			mount.Transport = a.transport // the host is its own
		}
		a.Client = w.Server.Mount(mount)
	}
	a.learnt = simnfs.Sum(column) //nolint:gosec // a hash
	a.ctx, a.cancel = context.WithCancel(context.Background())
	w.actors = append(w.actors, a)
	if w.scenario.Prepare != nil {
		w.last = a
		w.scenario.Prepare(a)
		w.last = nil
	}
}

func (w *World) start(a *Actor, p Program) {
	a.started = true
	go func() {
		defer func() {
			w.mu.Lock()
			a.ended = true
			w.mu.Unlock()
			a.cancel()
			w.arrive()
		}()
		a.gate(simnfs.Request{Kind: "start"})
		p.Run(a)
	}()
}

func (w *World) arrive() {
	select {
	case w.arrived <- struct{}{}:
	default:
	}
}

// transport is the way to the server of who goes on now: clients are those of hosts.
func (w *World) transport(r simnfs.Request, execute func() error) error {
	return w.last.transport(r, execute)
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
	c := ready[0]
	if c.actor != w.last || !w.private(c) {
		c = w.choose(ready)
	}
	fate, next := w.fate(c), c.actor
	w.last = next
	w.order.WriteString(next.Name)
	switch fate {
	case Pause:
		w.hold(next, w.scenario.Pause)
	case Nap:
		w.hold(next, w.scenario.Nap)
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
		w.note(next, "CRASH before "+c.request.String())
	}
	w.resume(c, fate)
	return true
}

// resume lets a goroutine go on. A crash is that of its whole process.
func (w *World) resume(c *call, fate Fate) {
	w.mu.Lock()
	a := c.actor
	a.waits = slices.DeleteFunc(a.waits, func(waits *call) bool { return waits == c })
	if fate == Crash && !a.ended {
		a.Crashed = true
	}
	w.mu.Unlock()
	if a.Crashed {
		a.cancel()
	}
	c.resume <- fate
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

// ready is before what somebody stands, that of the last one first, and that of the others in turn.
func (w *World) ready() (ready []*call, living bool) {
	w.admit()
	w.mu.Lock() // an actor that wakes has not heard of the scheduler since it fell asleep
	defer w.mu.Unlock()
	first := 0
	if w.last != nil {
		first = w.last.column
	}
	for i := range w.actors {
		a := w.actors[(first+i)%len(w.actors)]
		living = living || !a.ended || len(a.waits) > 0
		if !time.Now().Before(a.stopped) {
			ready = append(ready, a.inTurn()...)
		}
	}
	return ready, living
}

func (w *World) private(c *call) bool {
	return w.scenario.Private != nil && w.scenario.Private(c.request)
}

// choose decides who goes on, and with which of his calls. Not to go on with what came first is a
// preemption, of an actor or of one of its goroutines.
func (w *World) choose(ready []*call) *call {
	firsts := slices.CompactFunc(slices.Clone(ready), func(b, c *call) bool { return b.actor == c.actor })
	cost := 0
	if firsts[0].actor == w.last {
		cost = 1
	}
	first := w.oneOf(firsts, cost)
	return w.oneOf(slices.DeleteFunc(slices.Clone(ready), func(c *call) bool { return c.actor != first.actor }), 1)
}

func (w *World) oneOf(calls []*call, cost int) *call {
	if len(calls) == 1 && cost > 0 || cost > 0 && w.schedule.preemptions >= w.scenario.Preemptions {
		return calls[0]
	}
	return calls[w.schedule.choose(len(calls), cost, 0)]
}

func (w *World) fate(c *call) Fate {
	if w.schedule.faults >= w.scenario.Faults || w.private(c) || c.request.Path == "" {
		return Answered
	}
	fates := []Fate{Answered}
	for _, kind := range w.scenario.Kinds {
		if c.request.Changes || !kind.onlyChanges() {
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
	for waited := false; ; {
		synctest.Wait()
		ready, living := w.ready()
		if !living && waited {
			return
		}
		if !living { // but for goroutines that wait for a reply
			time.Sleep(10 * w.scenario.Pause)
			waited = true
			continue
		}
		if len(ready) == 0 {
			<-w.arrived
			continue
		}
		w.resume(ready[0], Crash) // one after the other: who crashes closes files that others know
	}
}
