package explore

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/multilock/go/internal/simnfs"
)

// prepared is a world in which no actor has begun: the common start of all schedules, which continue from
// copies of it.
type prepared struct {
	*World
	took time.Duration
}

// prepare plays what precedes all schedules. It returns nil if each schedule must do that itself: if the
// server keeps its history, or there are facts.
func (sc *Scenario) prepare(t *testing.T) *prepared {
	if sc.Prepare == nil || sc.Facts != nil || sc.threads() || slices.Contains(sc.Kinds, Forgets) {
		return nil
	}
	p := &prepared{}
	synctest.Test(t, func(*testing.T) {
		p.World = sc.world(nil)
		p.took = time.Since(p.began)
	})
	if p.violation != "" {
		return nil
	}
	return p
}

// world returns a world after the preparation, played now or copied.
func (sc *Scenario) world(from *prepared) *World {
	w := &World{
		scenario: sc, threads: sc.threads(), arrived: make(chan struct{}, 1), late: make(chan func(), 100),
		relative: sc.Excuses != nil && !sc.threads(),
		delayed:  map[*time.Timer]late{}, labels: map[string]string{}, texts: map[string]string{}, began: time.Now(),
	}
	w.label = w.labelled
	if !sc.Whole {
		w.ahead = fraction
	}
	if sc.Facts != nil {
		w.Facts = sc.Facts()
	}
	if from != nil {
		w.copies(from)
		return w
	}
	w.Server = simnfs.Serve(w.serverTime)
	if sc.Serves != nil {
		sc.Serves(w.Server)
	}
	w.Server.Forgets = slices.Contains(sc.Kinds, Forgets)
	for i, program := range sc.Actors {
		w.mount(i, program)
	}
	if sc.Alike > 0 {
		w.remount()
	}
	return w
}

// tokensBefore is more than any actor makes before all begin.
const tokensBefore = 20

// remount makes all actors begin with the same cache.
func (w *World) remount() {
	for i, a := range w.actors {
		mount := w.scenario.Mount
		mount.Transport = w.transportOf(a, w.scenario.Actors[i])
		a.Client, w.last = w.Server.Mount(mount), a
		a.tokens = tokensBefore
		w.scenario.Remembers(a)
	}
	w.last = nil
	for _, a := range w.actors[:w.scenario.Alike] {
		if first := w.actors[0]; a.State(w.view()) != first.State(w.view()) {
			w.Violate("%s and %s are not alike: they remember not the same", first.Name, a.Name)
		}
	}
}

// begins drops actors that begin exactly like another ready actor.
func (w *World) begins(ready []*call) []*call {
	if w.states == nil || w.scenario.EveryOrder {
		return ready
	}
	return slices.DeleteFunc(ready, func(c *call) bool {
		return c.beginsAs() && slices.ContainsFunc(ready, func(d *call) bool { return d.beginsAs() && d.actor.column < c.actor.column })
	})
}

// beginsAs reports whether an actor has not begun, and is like others.
func (c *call) beginsAs() bool {
	return c.request.Kind == start && c.actor.column < c.actor.world.scenario.Alike
}

func (w *World) serverTime() time.Time { return time.Now().Add(w.ahead) }

// copies copies the prepared world.
func (w *World) copies(from *prepared) {
	time.Sleep(from.took)
	w.labels = maps.Clone(from.labels)
	var clients []*simnfs.Client
	var transports []simnfs.Transport
	for i, program := range w.scenario.Actors {
		a := w.actor(i, program)
		a.tokens = from.actors[i].tokens
		clients = append(clients, from.actors[i].Client)
		transports = append(transports, w.transportOf(a, program))
	}
	server, copied := from.Server.Copy(w.serverTime, clients, transports)
	w.Server = server
	for i, a := range w.actors {
		a.Client = copied[i]
	}
}

// actor returns an actor that has not begun.
func (w *World) actor(column int, p Program) *Actor {
	a := &Actor{Name: p.Name, Host: cmp.Or(p.Host, p.Name), world: w, column: column, threads: p.Threads, trails: map[trail]int{}}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	a.call = a.newCall(simnfs.Request{})
	a.forget()
	a.changed = time.Now()
	w.actors = append(w.actors, a)
	return a
}

// transportOf returns the transport of an actor's host.
func (w *World) transportOf(a *Actor, p Program) simnfs.Transport {
	if p.Threads {
		return a.transport // the host is its own
	}
	return w.transport
}

// mount creates an actor on its host, and runs its preparation.
func (w *World) mount(column int, p Program) {
	a := w.actor(column, p)
	for _, b := range w.actors[:column] {
		if b.Host == a.Host {
			a.Client = b.Client
		}
	}
	if a.Client == nil {
		mount := w.scenario.Mount
		mount.Transport = w.transportOf(a, p)
		a.Client = w.Server.Mount(mount)
	}
	if w.scenario.Prepare != nil {
		w.last = a
		w.scenario.Prepare(a)
		w.last = nil
	}
}
