package explore

import (
	"reflect"
	"slices"
	"time"

	"github.com/multilock/go/internal/simnfs"
)

// state tells states of the world apart: those that are the same go on in the same ways. What
// that takes, faults and preemptions, is not in it, and who went on last is not: see [states].
//
// Who has ended or crashed does nothing more, so what he was told is forgotten, and with it what
// the client remembers that nobody else uses. (A request of his that is yet to be carried out has
// a sum of its own.)
func (w *World) state() simnfs.Sum {
	if w.threads {
		return w.stateOfThreads()
	}
	sum := w.Server.State(w.labelled)
	sum.Add(uint64(w.ahead))
	sum.AddTime(time.Now())
	if w.back.After(time.Now().Add(-w.scenario.Grace)) {
		sum.AddTime(w.back)
	}
	for _, a := range w.actors {
		if a.Crashed {
			sum.AddTime(w.fell)
		}
	}
	sum.Add(uint64(w.isDelayed()))
	sum.Add(uint64(w.digest(w.Facts)))
	for _, a := range w.actors {
		sum.Add(uint64(a.state()))
	}
	return sum
}

// stateOfThreads tells states apart where an actor has several goroutines: by all that anybody was
// ever told, for what a goroutine still knows of that is on its stack; by who went on last, and by
// the faults that were met. What the scenario notes leads to contexts and the like, and is not looked at.
func (w *World) stateOfThreads() simnfs.Sum {
	sum := w.Server.State(w.labelled)
	sum.Add(uint64(w.ahead))
	for _, at := range []time.Time{time.Now(), w.back, w.fell} {
		sum.AddTime(at)
	}
	if w.last != nil {
		sum.Add(uint64(w.last.column) + 1) //nolint:gosec // a hash
	}
	sum.Add(uint64(sumOf(w.met)))
	sum.Add(uint64(w.isDelayed()))
	for _, a := range w.actors {
		sum.Add(uint64(a.State(w.labelled)))
		sum.Add(uint64(a.learnt))
		for _, c := range a.inTurn() {
			sum.Add(c.request.Means)
		}
	}
	return sum
}

// isDelayed is what is yet to be carried out, in any order.
func (w *World) isDelayed() (late simnfs.Sum) {
	for _, at := range w.delayed {
		late += at
	}
	return late
}

// state is what an actor knows, and at what it stands.
func (a *Actor) state() (sum simnfs.Sum) {
	if a.gone() {
		return 0
	}
	sum.Add(uint64(a.State(a.world.labelled)))
	if a.ended {
		return sum // another of the same host uses it
	}
	sum.Add(uint64(a.learnt))
	sum.Add(uint64(a.reply))
	sum.AddTime(a.stands)
	sum.AddText(a.Unsaid)
	for _, c := range a.waits {
		sum.Add(c.request.Means)
	}
	if a.Believes() {
		sum.AddTime(a.until)
		sum.AddText(a.world.labelled(a.Has))
	}
	return sum
}

// gone says that an actor does nothing more, and that nobody uses what its client knows.
func (a *Actor) gone() bool {
	return !slices.ContainsFunc(a.world.actors, func(b *Actor) bool {
		return b.Client == a.Client && (!b.ended || b.late > 0)
	})
}

// Rest lets time pass, as Sleep does, and says that all that the actor does after that depends on
// where it is in its program, and on what can be reached from the given values: what it was told
// before, and cannot be reached from there, is forgotten. So those who came here in different
// ways are in one state.
func (a *Actor) Rest(d time.Duration, place string, knows ...any) {
	until := a.wakes(d)
	if a.world.scenario.Remember && !a.world.threads {
		a.learnt = simnfs.Sum(a.column) //nolint:gosec // a hash
		a.learnt.AddText(place)
		a.learnt.AddTime(until)
		for _, value := range knows {
			a.learnt.Add(uint64(a.world.digest(value)))
		}
	}
	a.sleep(until)
}

// digest is a hash of all that can be reached from a value.
func (w *World) digest(value any) simnfs.Sum {
	if value == nil {
		return 0
	}
	d := digester{world: w, met: map[reach]uint64{}}
	d.add(reflect.ValueOf(value))
	return d.sum
}
