package explore

import (
	"reflect"
	"slices"
	"time"

	"github.com/multilock/go/internal/simnfs"
)

// state hashes the state of the world: equal states have equal futures. It includes neither the cost,
// faults and preemptions, nor the actor that ran last: see [states].
//
// An actor that has ended or crashed does nothing more, so its knowledge is ignored, and with it those
// cached data of its client that no other actor uses. (A late request of it has a hash of its own.)
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

// stateOfThreads hashes the state if an actor has several goroutines: all answers that actors have received,
// because a goroutine may have them on its stack; the actor that ran last; and the faults so far. It omits
// the scenario's facts, which refer to contexts and the like.
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

// isDelayed hashes the late requests, in any order.
func (w *World) isDelayed() (late simnfs.Sum) {
	for _, at := range w.delayed {
		sum := at.sent
		w.view().Time(&sum, at.due)
		late += sum
	}
	return late
}

// state hashes what an actor knows, and its pending call.
func (a *Actor) state() (sum simnfs.Sum) {
	if a.gone() {
		return 0
	}
	view := a.world.view()
	sum.Add(uint64(a.State(view)))
	if a.ended {
		return sum // another actor on the host uses the client
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

// jitter is more than the real time between two readings of the clocks, of which one is not the bubble's.
// An actor relies on its lock for that much less.
const jitter = 100 * time.Millisecond

// gone reports whether an actor does nothing more, and no other actor uses its client.
func (a *Actor) gone() bool {
	return !slices.ContainsFunc(a.world.actors, func(b *Actor) bool {
		return b.Client == a.Client && (!b.ended || b.late > 0)
	})
}

// Rest is Sleep at a point after which the actor's behaviour only depends on its place in the program, and
// on what can be reached from the given values. Earlier answers that are not reachable from them are
// ignored, so actors that came here in different ways are in one state.
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

// rest hashes the knowledge of a resting actor. In a repeated part of a schedule it returns the known hash.
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

// forget resets what an actor knows.
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

// view returns which states are equal now.
//
// If times are relative, so is all behaviour: a program does the same an hour later. (Wake-ups are rounded,
// and times may have a tick: both are computed from the current time.) Prepared objects are older than
// everything that an actor makes, and than any limit: no lock remains, no actor uses the age of the base's
// directories, and the client's cache has an age of its own.
func (w *World) view() simnfs.View {
	view := simnfs.View{Label: w.label}
	if w.relative {
		view.Now, view.Old = time.Now(), w.started
		view.Ages, view.Just = w.scenario.Ages, w.serverTime().Truncate(max(w.Server.Tick, 1))
	}
	return view
}

// end hashes the server's state after a schedule, and which actors crashed, but not how long ago.
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

// addNow adds the current time.
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

// digest hashes everything that can be reached from a value.
func (w *World) digest(value any) simnfs.Sum {
	if value == nil {
		return 0
	}
	d := digester{world: w, met: map[reach]uint64{}}
	d.add(reflect.ValueOf(value))
	return d.sum
}
