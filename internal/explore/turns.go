package explore

import (
	"testing/synctest"
	"time"

	"github.com/multilock/go/internal/simnfs"
)

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
	if now := time.Now(); now != w.now {
		w.now, w.at = now, nil
	}
	if w.violation != "" || w.seenBefore(ready) {
		return false
	}
	next := ready[0]
	if next != w.last || !w.private(next) {
		next = w.choose(ready)
	}
	fate := w.fate(next)
	w.last, next.waits = next, false
	w.order.WriteString(next.Name)
	if fate == Jump || fate == Forgets || fate == Away || fate == AwayAhead {
		w.affects(all)
	}
	switch fate {
	case Jump:
		w.ahead += 10 * w.scenario.Pause
	case Forgets:
		w.Server.Forget()
		w.back = time.Now().Add(w.scenario.Down)
	case AwayAhead:
		w.ahead += 10 * w.scenario.Pause
		fallthrough
	case Away:
		w.back = time.Now().Add(w.scenario.Nap)
	}
	if fate == Crash {
		w.fell = next.changed
		w.note(next, "CRASH before "+next.request.String())
	}
	next.resume <- fate
	return true
}

// seenBefore says that the schedule has come to a state from which another one goes on.
func (w *World) seenBefore(ready []*Actor) bool {
	if w.states == nil || w.schedule.repeats() {
		return false
	}
	first, stays := ready[0], ready[0] == w.last
	others, fates := len(ready) > 1, w.schedule.faults < w.scenario.Faults
	switch {
	case stays && w.private(first):
		others, fates = false, false
	case stays && w.schedule.preemptions >= w.scenario.Preemptions:
		others = false
	}
	if !others && !fates {
		return false // there is nothing to choose here
	}
	if facts := w.digest(w.Facts); facts != w.facts {
		w.facts = facts
		w.affects(all)
	}
	at := arrival{state: w.state(), met: w.met, last: -1, preemptions: w.schedule.preemptions}
	for _, a := range ready {
		at.ready = append(at.ready, a.column)
	}
	if stays {
		at.last = first.column
	}
	n, more := w.states.comes(at)
	w.states.leads(w.at, n)
	w.at, w.known = n, !more
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

func (w *World) private(a *Actor) bool { return w.isPrivate(a.request) }

func (w *World) isPrivate(r simnfs.Request) bool {
	return w.scenario.Private != nil && w.scenario.Private(r)
}

// affects notes that an actor has changed something that another may see, or all have.
func (w *World) affects(column int) {
	if w.states != nil {
		w.states.changed(w.at, column)
	}
}

// all is who changes something if that is the server's fate.
const all = -1

func (w *World) choose(ready []*Actor) *Actor {
	cost := 0
	if ready[0] == w.last {
		cost = 1
		if w.schedule.preemptions >= w.scenario.Preemptions {
			return ready[0]
		}
	}
	return ready[w.pick(len(ready), cost, 0)]
}

// pick is a choice in a state. One that was made before leads here from that state.
func (w *World) pick(of, preemptions, faults int) int {
	s := &w.schedule
	if len(s.taken) == s.length-1 {
		w.at = s.from
	}
	picked := s.choose(of, preemptions, faults)
	if !s.repeats() && len(s.taken) > s.length {
		s.taken[len(s.taken)-1].at = w.at
	}
	return picked
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
	pick := w.pick(len(fates), 0, 1)
	if pick > 0 {
		w.met = append(w.met, fates[pick])
	}
	return fates[pick]
}
