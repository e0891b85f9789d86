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
	view := w.view()
	sum := w.Server.State(view)
	sum.Add(uint64(w.ahead))
	w.addNow(&sum)
	if w.back.After(time.Now().Add(-w.scenario.Grace)) {
		view.Time(&sum, w.back)
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
	sum := w.Server.State(w.view())
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
		sum.Add(uint64(a.State(w.view())))
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
		sum := at.sent
		w.view().Time(&sum, at.due)
		late += sum
	}
	return late
}

// state is what an actor knows, and at what it stands.
func (a *Actor) state() (sum simnfs.Sum) {
	if a.gone() {
		return 0
	}
	view := a.world.view()
	sum.Add(uint64(a.State(view)))
	if a.ended {
		return sum // another of the same host uses it
	}
	sum.Add(uint64(a.learnt))
	view.Time(&sum, a.since)
	sum.Add(uint64(a.reply))
	view.Time(&sum, a.stands)
	sum.AddText(a.Unsaid)
	for _, c := range a.waits {
		sum.Add(c.request.Means)
		sum.AddText(c.request.Kind)
	}
	if a.Believes() {
		view.Time(&sum, a.until.Round(jitter))
		sum.AddText(a.world.labelled(a.Has))
	}
	return sum
}

// jitter is more than the machine itself takes between two looks at the clocks, of which one is not the bubble's:
// a belief is shorter by that.
const jitter = 100 * time.Millisecond

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
		a.forget()
		a.learnt.AddText(place)
		a.learns(until)
		a.learnt.Add(uint64(a.world.rest(knows)))
	}
	a.sleep(until)
}

// rest is what somebody knows who rests. Where a schedule repeats another, it is what it was.
func (w *World) rest(knows []any) (sum simnfs.Sum) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rested++; w.rested <= len(w.rests) {
		return w.rests[w.rested-1]
	}
	for _, value := range knows {
		sum.Add(uint64(w.digest(value)))
	}
	w.rests = append(w.rests, sum)
	return sum
}

// forget has what an actor knows begin anew.
func (a *Actor) forget() {
	a.learnt, a.since = simnfs.Sum(a.column), time.Now() //nolint:gosec // a hash
}

// learns adds a time to what an actor knows.
func (a *Actor) learns(t time.Time) {
	view := simnfs.View{}
	if a.world.relative {
		view.Now, view.Old = a.since, a.world.started
	}
	view.Time(&a.learnt, t)
}

// view is how states are told apart now.
//
// Where times are relative, so is what everybody does: a program that runs an hour later does the same an
// hour later. (Wake-ups are rounded, and times may have a step: what now is by these counts.) What was
// prepared is older than all that an actor makes, and than any limit: no lock is left of it, the
// base's directories have no age that anybody asks for, and the client's memory of them has one
// of its own.
func (w *World) view() simnfs.View {
	view := simnfs.View{Label: w.label}
	if w.relative {
		view.Now, view.Old = time.Now(), w.started
		view.Ages, view.Just = w.scenario.Ages, w.serverTime().Truncate(max(w.Server.Tick, 1))
	}
	return view
}

// end is how a schedule left the server, and who crashed. How long that was ago makes no difference then.
func (w *World) end(ident func(uint64) uint64, rename func(string) string) (sum simnfs.Sum) {
	view := w.view()
	view.Ident, view.Label = ident, func(text string) string { return rename(w.labelled(text)) }
	if w.relative {
		view.Now, view.Just = w.changed, time.Time{}
	}
	sum = w.Server.State(view)
	var crashed simnfs.Sum
	for _, a := range w.actors {
		if a.Crashed {
			var one simnfs.Sum
			one.AddText(rename("host" + a.Host))
			crashed += one
		}
	}
	sum.Add(uint64(crashed))
	return sum
}

// addNow adds what time it is.
func (w *World) addNow(sum *simnfs.Sum) {
	if !w.relative {
		sum.AddTime(time.Now())
		for _, a := range w.actors {
			if a.Crashed {
				sum.AddTime(w.fell)
			}
		}
		return
	}
	for _, step := range []time.Duration{max(w.scenario.Grid, 1), time.Second, max(w.Server.Tick, 1)} {
		sum.Add(uint64(time.Since(w.began) % step)) //nolint:gosec // a hash
	}
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
