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
	Facts  any // of the scenario

	scenario  *Scenario
	threads   bool // see Program.Threads
	relative  bool // times count from now: see Scenario.Excuses
	schedule  schedule
	actors    []*Actor
	last      *Actor
	mu        sync.Mutex // guards what actors write when they come to a gate
	closed    []func()   // what is to be closed before anybody goes on: see threads.go
	arrived   chan struct{}
	late      chan func() // requests that are carried out now
	began     time.Time
	started   time.Time     // when all was prepared
	ahead     time.Duration // of the server's clock
	back      time.Time     // when the server is, if it is away
	fell      time.Time     // when whoever crashed last had changed something last
	lines     []line
	met       []Fate
	delayed   map[*time.Timer]late // requests that are carried out late
	labels    map[string]string    // of tokens
	texts     map[string]string    // as they were labelled
	label     func(string) string  // labelled
	states    *states
	at        uint32 // the last state at this time in which there was something to choose
	now       time.Time
	facts     simnfs.Sum
	sights    map[simnfs.Sum]int // see looks
	shape     simnfs.Sum         // of what is on the server, for these; 0: it may have changed
	changed   time.Time          // when anybody changed something last
	later     bool               // time has passed since a state was looked at
	answered  int                // the choice of what becomes of the request that goes on, and one more; 0: there was none
	rested    int                // how often somebody has
	rests     []simnfs.Sum
	known     bool // it has come to a state that was seen before
	steps     int
	calls     []*call // before which somebody stands now
	order     strings.Builder
	violation string
	over      bool
}

// owned checks what others believe to have, when an actor has changed something.
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

// Met are the faults that requests have met so far.
func (w *World) Met() []Fate { return w.met }

// Pause is how long who stands still does.
func (w *World) Pause() time.Duration { return w.scenario.Pause }

// SinceCrash is the time since who crashed last changed something.
func (w *World) SinceCrash() time.Duration { return time.Since(w.fell) }

// Elapsed is the time since everything began.
func (w *World) Elapsed() time.Duration { return time.Since(w.started) }

// Actors are all of them.
func (w *World) Actors() []*Actor { return w.actors }

// State tells states apart, as Remember does.
func (w *World) State() string { return strconv.FormatUint(uint64(w.state()), 16) }

// End tells apart how schedules leave the server: the past is forgotten as Remember does.
func (w *World) End() string { return w.EndAs(nil, func(text string) string { return text }) }

// EndAs is End with other names for texts, and for what was made: the client's number is the upper half of
// those.
func (w *World) EndAs(ident func(id uint64) uint64, rename func(string) string) string {
	return strconv.FormatUint(uint64(w.end(ident, rename)), 16)
}

// Order is who went on, in turn.
func (w *World) Order() string { return w.order.String() }

// Violate notes that something that must hold does not. The first counts.
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

// fraction has no time of a server without a tick look as if it had one.
const fraction = 3 * time.Millisecond

// choicesBehind are more than most schedules have behind what is given.
const choicesBehind = 64

// play runs a scenario by a schedule, from what was prepared, if it was.
func (sc *Scenario) play(t *testing.T, s schedule, seen *states, from *prepared) (w *World) {
	synctest.Test(t, func(*testing.T) {
		w = sc.world(from)
		w.schedule, w.states, w.rests = s, seen, s.rests
		w.schedule.traced = s.traced || w.threads // of those the same schedule may come to something else
		w.schedule.taken = make([]taken, 0, s.length+choicesBehind)
		if w.relative {
			time.Sleep(max(sc.Grid, time.Second)) // what was prepared is older than all else
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

// start is the request of who has not begun.
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

// transport is the way to the server of who goes on now: clients are those of hosts.
func (w *World) transport(r simnfs.Request, execute func() error) error {
	return w.last.transport(r, execute)
}

// stop lets everybody crash who has not ended.
func (w *World) stop() {
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
