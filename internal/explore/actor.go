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
	// Has is the token of the lock that it claims to hold, for [Scenario.Owns].
	Has string
	// Crashed is true after a crash.
	Crashed bool
	// Unsaid is the kind of the last request that was executed and whose reply was lost.
	Unsaid string

	world   *World
	column  int
	started bool
	threads bool      // see Program.Threads
	waits   []*call   // pending calls of its goroutines
	call    *call     // its only call, without threads
	stopped time.Time // until when all its goroutines pause
	ended   bool
	until   time.Time // until when it relies on its lock
	relies  func() time.Duration
	ctx     context.Context //nolint:containedctx // the actor's lifetime
	cancel  context.CancelFunc
	learnt  simnfs.Sum
	since   time.Time     // times in learnt are relative to this
	reply   simnfs.Sum    // to the request after which it pauses
	stands  time.Time     // until when it pauses
	late    int           // number of its requests that are still to be executed
	changed time.Time     // the time of its last change
	changes int           // number of its changes, or possible changes
	trails  map[trail]int // what it had left, by step
	tokens  int
	behind  int // the index of its last request's choice, plus 1; 0 for none, or after reading a clock
	recalls int // by its client, before it had the reply
}

// call is a pending call of an actor's goroutine.
type call struct {
	actor   *Actor
	request simnfs.Request
	entry   bool       // only a turn, without a request: see threads.go
	since   int        // the step in which it was made
	where   simnfs.Sum // the calling code; for actors with threads
	resume  chan Fate
}

// World returns the actor's world.
func (a *Actor) World() *World { return a.world }

// Sleep sleeps, rounded up to the grid.
func (a *Actor) Sleep(d time.Duration) { a.sleep(a.wakes(d)) }

// Now returns the time of the actor's host. With [Scenario.Looks] only the bubble's time passes, so that
// a schedule can be repeated.
func (a *Actor) Now() boottime.Instant {
	if !a.world.scenario.Looks || a.threads {
		return boottime.Now()
	}
	a.Looks()
	return boottime.At(time.Now())
}

// Looks records that an actor reads a clock.
func (a *Actor) Looks() {
	if a.world.scenario.Looks && !a.threads {
		a.learns(time.Now())
		a.looked()
	}
}

// looked records that a pause after the last request would make a difference.
func (a *Actor) looked() {
	if a.behind > 0 {
		a.world.schedule.taken[a.behind-1].looked = true
		a.behind = 0
	}
}

// wakes returns when a sleep of this duration ends.
func (a *Actor) wakes(d time.Duration) time.Time {
	a.Looks()
	grid := max(a.world.scenario.Grid, 1)
	passed := time.Since(a.world.began) + d
	return a.world.began.Add((passed + grid - 1) / grid * grid)
}

func (a *Actor) sleep(until time.Time) {
	time.Sleep(time.Until(until))
	a.gate(simnfs.Request{Kind: "wakes"}) // actors that wake at the same time run one at a time
}

// Believe records until when the actor relies on its lock. It is a violation if another actor does, too.
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

// Believes reports whether the actor relies on its lock now. An actor that has crashed does not.
func (a *Actor) Believes() bool {
	return !a.Crashed && (time.Now().Before(a.until) || a.relies != nil && a.relies() > 0)
}

// Note adds what an actor did or found to the trace.
func (a *Actor) Note(format string, args ...any) { a.world.note(a, format, args...) }

// noteReply formats the arguments only for a trace.
func (a *Actor) noteReply(fate Fate, r simnfs.Request, err error) {
	if a.world.schedule.traced {
		a.Note("%s %s = %v", fate, r, err)
	}
}

// gate waits for the actor's turn.
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
	if a.world.threads && slices.Contains([]Fate{Pause, Slow, Nap, Doze}, fate) { // other fates change the answer
		a.learnt.Add(uint64(fate)) //nolint:gosec // a hash
	}
	a.reply, a.stands = 0, time.Time{}
	return fate
}

// before returns the pending call for a request. An actor without threads has one at a time.
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

// Ask sends a request to something other than a file system. It has the same fates, and returns EIO for a
// lost request or reply.
func (a *Actor) Ask(kind, about string, changes bool, execute func() error) error {
	return a.transport(simnfs.Request{Kind: kind, Path: about, Changes: changes}, execute)
}

// transport sends the actor's requests to the server.
func (a *Actor) transport(r simnfs.Request, execute func() error) (err error) {
	if a.Gone() {
		return syscall.EIO // deferred calls have no effect any more
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
	if fate == Answered && !a.threads { // other goroutines may be in a call
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

// standBehind pauses with an unread reply, which depends on the server's state.
func (a *Actor) standBehind(d time.Duration, err error) {
	if a.world.states != nil && !a.world.threads {
		a.reply = a.world.Server.State(a.world.view())
		a.reply.Add(uint64(d)) //nolint:gosec // a hash
		a.reply.AddText(fmt.Sprint(err))
	}
	a.stand(d, "has the reply")
}

// waitForServer pauses while the server is down, or in its grace period.
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

// delay executes a request after a pause.
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

// late is a request to execute late.
type late struct {
	sent simnfs.Sum
	due  time.Time
}

// stand pauses.
func (a *Actor) stand(d time.Duration, then string) {
	a.stands = time.Now().Add(d)
	time.Sleep(d)
	a.gate(simnfs.Request{Kind: then})
}
