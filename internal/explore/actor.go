package explore

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/multilock/go/internal/simnfs"
	"github.com/multilock/go/multilock/boottime"
)

// Actor is one process on one host.
type Actor struct {
	*simnfs.Client
	Name, Host string
	// Has is what it believes to have, for [Scenario.Owns].
	Has string
	// Crashed says that it ended in the middle.
	Crashed bool
	// Unsaid is the request that was carried out and of which the reply was lost, the last one.
	Unsaid string

	world   *World
	column  int
	started bool
	threads bool      // see Program.Threads
	waits   []*call   // what its goroutines stand before
	call    *call     // its only one, if it has no threads
	stopped time.Time // until when all of them are
	ended   bool
	until   time.Time // its belief
	relies  func() time.Duration
	ctx     context.Context //nolint:containedctx // the actor's lifetime
	cancel  context.CancelFunc
	learnt  simnfs.Sum
	since   time.Time     // from when on times count in that
	reply   simnfs.Sum    // to what it stands still behind
	stands  time.Time     // until when it stands still
	late    int           // requests that are yet to be carried out
	changed time.Time     // when it changed something last
	changes int           // how often it did, or may have
	trails  map[trail]int // what it had left at which steps
	tokens  int
	behind  int // the choice that was made of the last request, and one more; 0: none, or it has looked at a clock since
	recalls int // by its client, before it had the reply
}

// call is what a goroutine of an actor stands before.
type call struct {
	actor   *Actor
	request simnfs.Request
	entry   bool       // nothing is asked of anybody yet: see threads.go
	since   int        // the step at which it came
	where   simnfs.Sum // in the code it was made; of actors with threads
	resume  chan Fate
}

// World is the one that the actor is in.
func (a *Actor) World() *World { return a.world }

// Sleep lets time pass.
func (a *Actor) Sleep(d time.Duration) { a.sleep(a.wakes(d)) }

// Now is what the clock of the actor's host says. With [Scenario.Looks] no time passes there but the
// bubble's, so that a schedule comes to the same again.
func (a *Actor) Now() boottime.Instant {
	if !a.world.scenario.Looks || a.threads {
		return boottime.Now()
	}
	a.Looks()
	return boottime.At(time.Now())
}

// Looks notes that an actor looks at a clock.
func (a *Actor) Looks() {
	if a.world.scenario.Looks && !a.threads {
		a.learns(time.Now())
		a.looked()
	}
}

// looked notes that it makes a difference to stand still behind the last request.
func (a *Actor) looked() {
	if a.behind > 0 {
		a.world.schedule.taken[a.behind-1].looked = true
		a.behind = 0
	}
}

// wakes is when who sleeps for so long wakes.
func (a *Actor) wakes(d time.Duration) time.Time {
	a.Looks()
	grid := max(a.world.scenario.Grid, 1)
	passed := time.Since(a.world.began) + d
	return a.world.began.Add((passed + grid - 1) / grid * grid)
}

func (a *Actor) sleep(until time.Time) {
	time.Sleep(time.Until(until))
	a.gate(simnfs.Request{Kind: "wakes"}) // who wakes at the same time goes on one after the other
}

// Believe notes that the actor believes until then, a violation if another does.
func (a *Actor) Believe(until time.Time) {
	a.until = until
	a.world.affects(a.column)
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
func (a *Actor) Believes() bool {
	return !a.Crashed && (time.Now().Before(a.until) || a.relies != nil && a.relies() > 0)
}

// Note adds to the trace what an actor did or found.
func (a *Actor) Note(format string, args ...any) { a.world.note(a, format, args...) }

// noteReply has the arguments made only if they are looked at.
func (a *Actor) noteReply(fate Fate, r simnfs.Request, err error) {
	if a.world.schedule.traced {
		a.Note("%s %s = %v", fate, r, err)
	}
}

// gate waits for its turn.
func (a *Actor) gate(r simnfs.Request) Fate {
	fate := a.waitAt(a.before(r))
	switch {
	case fate == Crash && a.threads:
		return Crash
	case fate == Crash:
		runtime.Goexit()
	case a.threads:
		a.learnt.AddText(a.world.labelled(r.String()))
	}
	if !a.world.scenario.Looks || a.world.threads {
		a.learns(time.Now())
	}
	if a.world.threads && slices.Contains([]Fate{Pause, Slow, Nap, Doze}, fate) { // of others the answer tells
		a.learnt.Add(uint64(fate)) //nolint:gosec // a hash
	}
	a.reply, a.stands = 0, time.Time{}
	return fate
}

// before is what it stands before with a request. An actor that is alone stands before one thing at a time.
func (a *Actor) before(r simnfs.Request) *call {
	if a.threads {
		return a.newCall(r)
	}
	a.call.request = r
	return a.call
}

func (a *Actor) newCall(r simnfs.Request) *call {
	return &call{actor: a, request: r, resume: make(chan Fate)}
}

func (a *Actor) waitAt(c *call) Fate {
	if a.threads {
		c.where = caller()
	} else {
		if a.recalls != a.Recalled() || !a.world.isFateful(c.request) {
			a.looked()
		}
		a.behind = 0
	}
	a.world.mu.Lock()
	if a.threads && (a.Crashed || a.ended) {
		a.world.mu.Unlock()
		return Crash
	}
	c.since = a.world.steps
	a.waits = append(a.waits, c)
	a.world.mu.Unlock()
	a.world.arrive()
	return <-c.resume
}

// Ask brings a request to what is not a file system: what becomes of it is decided as of any, and
// what went wrong on the way is EIO.
func (a *Actor) Ask(kind, about string, changes bool, execute func() error) error {
	return a.transport(simnfs.Request{Kind: kind, Path: about, Changes: changes}, execute)
}

// transport is the actor's way to the server.
func (a *Actor) transport(r simnfs.Request, execute func() error) (err error) {
	if a.Gone() {
		return syscall.EIO // what is deferred does not happen any more
	}
	a.sees(r)
	if !a.started {
		return execute()
	}
	fate := a.gate(r)
	switch fate {
	case Crash:
		return syscall.EIO
	case Pause:
		a.stand(a.world.scenario.Pause, "goes on")
	case Nap:
		a.stand(a.world.scenario.Nap, "goes on")
	}
	a.waitForServer(r)
	if r.Changes {
		a.changes++
	}
	defer func() { a.noteReply(fate, r, err) }()
	switch fate {
	case Failed:
		return syscall.EIO
	case Lost:
		done := a.Unheard(execute)
		if a.world.owned(a, r, done); done == nil {
			a.Unsaid = r.Kind
		}
		return syscall.EIO
	case Twice, Again:
		a.world.owned(a, r, a.Unheard(execute))
		if fate == Again {
			a.stand(a.world.scenario.Nap, "repeats")
		}
	case Refused:
		if r.Kind == "rename" {
			done := a.Unheard(execute)
			a.world.owned(a, r, done)
			if done == nil {
				return syscall.ENOTEMPTY
			}
		}
	case Late:
		a.delay(r, execute)
		return syscall.EIO
	}
	err = execute()
	a.world.owned(a, r, err)
	if fate == Answered && !a.threads { // of its goroutines others may be under way
		a.behind, a.recalls = a.world.answered, a.Recalled()
	}
	switch fate {
	case Slow:
		a.standBehind(a.world.scenario.Pause, err)
	case Doze:
		a.standBehind(a.world.scenario.Nap, err)
	}
	return err
}

// standBehind is to stand still with a reply that is not looked at: it says how the server was.
func (a *Actor) standBehind(d time.Duration, err error) {
	if a.world.states != nil && !a.world.threads {
		a.reply = a.world.Server.State(a.world.view())
		a.reply.Add(uint64(d)) //nolint:gosec // a hash
		a.reply.AddText(fmt.Sprint(err))
	}
	a.stand(d, "has the reply")
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
		a.stand(time.Until(until), "is let through")
	}
}

// delay has a request carried out after a pause.
func (a *Actor) delay(r simnfs.Request, execute func() error) {
	w, sent := a.world, a.learnt
	sent.Add(r.Means)
	a.late++
	var timer *time.Timer
	delay := cmp.Or(w.scenario.Delay, w.scenario.Pause)
	timer = time.AfterFunc(delay, func() {
		w.late <- func() {
			delete(w.delayed, timer)
			a.late--
			err := a.Unheard(execute)
			a.Note("carried out late: %s = %v", r, err)
			w.owned(a, r, err)
		}
		w.arrive()
	})
	w.delayed[timer] = late{sent, time.Now().Add(delay)}
}

// late is a request that is carried out late.
type late struct {
	sent simnfs.Sum
	due  time.Time
}

// stand is to stand still.
func (a *Actor) stand(d time.Duration, then string) {
	a.stands = time.Now().Add(d)
	time.Sleep(d)
	a.gate(simnfs.Request{Kind: then})
}
