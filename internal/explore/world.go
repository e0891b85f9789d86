package explore

import (
	"fmt"
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
	Facts  any // the scenario's facts

	scenario  *Scenario
	threads   bool // see Program.Threads
	relative  bool // times are relative to now: see Scenario.Excuses
	schedule  schedule
	actors    []*Actor
	last      *Actor
	mu        sync.Mutex // guards the fields that actors write at a gate
	closed    []func()   // closes to run before any actor continues: see threads.go
	arrived   chan struct{}
	late      chan func() // late requests to execute now
	began     time.Time
	started   time.Time     // when the preparation ended
	ahead     time.Duration // of the server's clock
	back      time.Time     // when the server is back, if it is down
	fell      time.Time     // when the last actor that crashed had last changed something
	lines     []line
	met       []Fate
	delayed   map[*time.Timer]late // requests to execute late
	labels    map[string]string    // of tokens
	texts     map[string]string    // already labelled
	label     func(string) string  // labelled
	states    *states
	at        uint32 // the last state at this time that had a choice
	now       time.Time
	facts     simnfs.Sum
	sights    map[simnfs.Sum]int // see looks
	shape     simnfs.Sum         // hash of the server's names for sights; 0 if it may have changed
	changed   time.Time          // the time of the last change by any actor
	later     bool               // time has passed since the last comparison of states
	answered  int                // the index of the choice of the current request's fate, plus 1; 0 for none
	rested    int                // number of rests
	rests     []simnfs.Sum
	known     bool // it has reached a known state
	steps     int
	calls     []*call // pending calls
	order     strings.Builder
	violation string
	over      bool
}

// owned checks the locks on which other actors rely, after an actor has changed something.
func (w *World) owned(by *Actor, r simnfs.Request, err error) {
	if !r.Changes {
		return
	}
	by.changed, w.shape = time.Now(), 0
	if err == nil && !w.isPrivate(r) {
		w.changed = time.Now()
		w.affects(by.column)
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

// Met returns the faults so far.
func (w *World) Met() []Fate { return w.met }

// Pause returns the duration of a pause.
func (w *World) Pause() time.Duration { return w.scenario.Pause }

// SinceCrash returns the time since the last actor that crashed had changed something.
func (w *World) SinceCrash() time.Duration { return time.Since(w.fell) }

// Elapsed returns the time since the start of the schedule.
func (w *World) Elapsed() time.Duration { return time.Since(w.started) }

// Actors returns all actors.
func (w *World) Actors() []*Actor { return w.actors }

// State returns a hash of the state, as used by Remember.
func (w *World) State() string { return strconv.FormatUint(uint64(w.state()), 16) }

// End returns a hash of the server's state after a schedule, independent of its past as with Remember.
func (w *World) End() string { return w.EndAs(nil, func(text string) string { return text }) }

// EndAs is End with other names for texts and inode numbers. The upper half of an inode number is its
// client's number.
func (w *World) EndAs(ident func(id uint64) uint64, rename func(string) string) string {
	return strconv.FormatUint(uint64(w.end(ident, rename)), 16)
}

// Order returns the sequence of actors that ran.
func (w *World) Order() string { return w.order.String() }

// Violate records a violation. The first one counts.
func (w *World) Violate(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.violation == "" && !w.over {
		w.violation = fmt.Sprintf(format, args...)
		w.lines = append(w.lines, line{time.Since(w.began), 0, "VIOLATION %s", []any{w.violation}})
	}
}

func (w *World) note(a *Actor, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.schedule.traced && !w.over {
		w.lines = append(w.lines, line{time.Since(w.began), a.column, format, args})
	}
}

// fraction keeps the times of a server without a tick from looking as if it had one.
const fraction = 3 * time.Millisecond

// choicesBehind is more than most schedules have after the given choices.
const choicesBehind = 64

// play runs a scenario by a schedule, from the prepared world if there is one.
func (sc *Scenario) play(t *testing.T, s schedule, seen *states, from *prepared) (w *World) {
	synctest.Test(t, func(*testing.T) {
		w = sc.world(from)
		w.schedule, w.states, w.rests = s, seen, s.rests
		w.schedule.traced = s.traced || w.threads // with threads the same schedule may have another result
		w.schedule.taken = make([]taken, 0, s.length+choicesBehind)
		if w.relative {
			time.Sleep(max(sc.Grid, time.Second)) // prepared objects are older than all others
		}
		w.started = time.Now()
		for i, program := range sc.Actors {
			w.start(w.actors[i], program)
		}
		for w.step() {
		}
		if w.violation == "" && !w.known && sc.AtEnd != nil {
			sc.AtEnd(w)
		}
		w.stop()
	})
	return w
}

// start is the request of an actor that has not begun.
const start = "start"

func (w *World) start(a *Actor, p Program) {
	a.started = true
	a.forget()
	go func() {
		defer func() {
			w.mu.Lock()
			a.ended = true
			w.mu.Unlock()
			a.cancel()
			w.arrive()
		}()
		a.gate(simnfs.Request{Kind: start})
		p.Run(a)
	}()
}

func (w *World) arrive() {
	select {
	case w.arrived <- struct{}{}:
	default:
	}
}

// transport sends a request of the actor that is running: clients belong to hosts.
func (w *World) transport(r simnfs.Request, execute func() error) error {
	return w.last.transport(r, execute)
}

// stop crashes all actors that have not ended.
func (w *World) stop() {
	w.over = true
	for waited := false; ; {
		synctest.Wait()
		ready, living := w.ready()
		if !living && waited {
			return
		}
		if !living { // except goroutines that wait for a reply
			time.Sleep(10 * w.scenario.Pause)
			waited = true
			continue
		}
		if len(ready) == 0 {
			<-w.arrived
			continue
		}
		w.resume(ready[0], Crash) // one at a time: an actor that crashes closes files that others use
	}
}
