package explore

import (
	"slices"
	"testing/synctest"
	"time"

	"github.com/multilock/go/internal/simnfs"
)

// step lets one actor run until its next request. It returns false if all have ended, or after a violation.
// It may only read the actors' fields while all actors are blocked.
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
		w.now, w.at, w.later = now, 0, true
		ready = w.wakes()
	}
	ready = w.begins(ready)
	if w.violation != "" || w.seenBefore(ready) {
		return false
	}
	w.looks()
	c := ready[0]
	if c.actor != w.last || !w.private(c) {
		c = w.choose(ready)
	}
	fate, next := w.fate(c), c.actor
	w.last = next
	w.order.WriteString(next.Name)
	if fate == Jump || fate == Forgets || fate == Away || fate == AwayAhead {
		w.affects(all)
	}
	switch fate {
	case Pause:
		w.hold(next, w.scenario.Pause)
	case Nap:
		w.hold(next, w.scenario.Nap)
	case Jump:
		w.ahead += 10 * w.scenario.Pause
	case Forgets:
		w.Server.Forget()
		w.shape = 0
		w.back = time.Now().Add(w.scenario.Down)
	case AwayAhead:
		w.ahead += 10 * w.scenario.Pause
		fallthrough
	case Away:
		w.back = time.Now().Add(w.scenario.Nap)
	}
	if fate == Crash {
		w.fell = next.changed
		w.note(next, "CRASH before %s", c.request)
	}
	w.resume(c, fate)
	return true
}

// resume continues a goroutine. A crash applies to its whole process.
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

// seenBefore reports whether the schedule has reached a state from which another one continues.
func (w *World) seenBefore(ready []*call) bool {
	if w.states == nil || w.schedule.repeats() {
		return false
	}
	if !w.chooses(ready) {
		return w.endsAsBefore(ready)
	}
	if w.threads {
		_, more := w.states.comes(arrival{state: w.state(), faults: w.schedule.faults, last: -1, preemptions: w.schedule.preemptions})
		w.known = !more
		return w.known
	}
	if facts := w.digest(w.Facts); facts != w.facts {
		w.facts = facts
		w.affects(all)
	}
	w.later = false
	n, more := w.states.comes(w.arrival(ready))
	w.states.leadsTo(w.at, n)
	w.at, w.known = n, !more
	return w.known
}

// endsAsBefore reports whether only known outcomes can follow. It is called when time has passed, and there
// is no choice.
func (w *World) endsAsBefore(ready []*call) bool {
	later := w.later
	w.later = false
	if !later || w.threads || w.schedule.faults < w.scenario.Faults {
		return false
	}
	w.known = w.states.ends(w.arrival(ready))
	return w.known
}

// arrival returns how the schedule has reached the current state.
func (w *World) arrival(ready []*call) arrival {
	at := arrival{state: w.state(), faults: w.schedule.faults, last: -1, preemptions: w.schedule.preemptions}
	if w.relative {
		at.past = w.scenario.Excuses(w)
	} else {
		at.met = inOrder(w.met)
	}
	if first := ready[0].actor; first == w.last {
		at.last = first.column
	}
	return at
}

// chooses reports whether there is a choice here.
func (w *World) chooses(ready []*call) bool {
	others, fates := len(ready) > 1, w.schedule.faults < w.scenario.Faults
	switch stays := ready[0].actor == w.last; {
	case w.threads:
	case stays && w.private(ready[0]):
		return false
	case stays && w.schedule.preemptions >= w.scenario.Preemptions:
		others = false
	}
	return others || fates
}

// carryOut executes the late requests that are due.
func (w *World) carryOut() {
	for len(w.late) > 0 {
		(<-w.late)()
	}
}

// ready returns the pending calls, the last actor's first, and then those of the others in turn.
func (w *World) ready() (ready []*call, living bool) {
	w.admit()
	w.mu.Lock() // an actor that wakes has not synchronised with the scheduler since it fell asleep
	defer w.mu.Unlock()
	first := 0
	ready = w.calls[:0]
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
	w.calls = ready
	return ready, living
}

// wakes returns the pending calls after time has passed. The actor that ran last no longer matters: it may
// depend on an order that makes no other difference, and is not played (see [node]).
func (w *World) wakes() (ready []*call) {
	w.last = nil
	ready, _ = w.ready()
	if w.scenario.InTurn {
		w.last = ready[0].actor
	}
	return ready
}

func (w *World) private(c *call) bool { return w.isPrivate(c.request) }

// isFateful reports whether a request may have another fate than Answered.
func (w *World) isFateful(r simnfs.Request) bool { return r.Path != "" && !w.isPrivate(r) }

func (w *World) isPrivate(r simnfs.Request) bool {
	return w.scenario.Private != nil && w.scenario.Private(r)
}

// affects records that an actor, or the server, has changed something that others may see.
func (w *World) affects(column int) {
	if w.states != nil {
		w.states.changed(w.at, column)
	}
}

// all is the column of a change that is the server's fate.
const all = -1

// choose selects the actor to continue, and its call. Any choice but the first is a preemption of an actor
// or of one of its goroutines.
func (w *World) choose(ready []*call) *call {
	cost := 0
	if ready[0].actor == w.last {
		cost = 1
	}
	if !w.threads {
		return w.oneOf(ready, cost)
	}
	firsts := slices.CompactFunc(slices.Clone(ready), func(b, c *call) bool { return b.actor == c.actor })
	first := w.oneOf(firsts, cost)
	return w.oneOf(slices.DeleteFunc(slices.Clone(ready), func(c *call) bool { return c.actor != first.actor }), 1)
}

func (w *World) oneOf(calls []*call, cost int) *call {
	if len(calls) == 1 && cost > 0 || cost > 0 && w.schedule.preemptions >= w.scenario.Preemptions {
		return calls[0]
	}
	return calls[w.pick(len(calls), cost, 0)]
}

// pick makes a choice. The last given choice continues from the state in which it was made.
func (w *World) pick(of, preemptions, faults int) int {
	s := &w.schedule
	if len(s.taken) == s.length-1 {
		w.at = s.from
	}
	picked := s.choose(of, preemptions, faults)
	s.taken[len(s.taken)-1].rests = uint16(w.rested)
	if !s.repeats() && len(s.taken) > s.length {
		s.taken[len(s.taken)-1].at = w.at
	}
	return picked
}

func (w *World) fate(c *call) Fate {
	w.answered = 0
	if w.schedule.faults >= w.scenario.Faults || !w.isFateful(c.request) {
		return Answered
	}
	var room [Refused + 1]Fate
	fates := append(room[:0], Answered)
	behind := uint16(0)
	for _, kind := range w.scenario.Kinds {
		if (c.request.Changes || !kind.onlyChanges()) && !w.sameAs(c, kind) {
			if kind == Slow || kind == Doze {
				behind |= 1 << len(fates)
			}
			fates = append(fates, kind)
		}
	}
	pick := w.pick(len(fates), 0, 1)
	if w.scenario.Looks && !w.threads {
		w.answered = len(w.schedule.taken)
		w.schedule.taken[w.answered-1].behind = behind
	}
	if pick > 0 {
		w.met = append(w.met, fates[pick])
	}
	return fates[pick]
}
