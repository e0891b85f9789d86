package lockgroup

import (
	"cmp"
	"maps"
	"slices"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// ends are the outcomes of runs, from the events of a history. Events come in any order: each host
// writes its own events, by its own clock.
type ends struct {
	runs   map[acquisition]*run
	chunks map[string][]multilock.Result // the failed or open jobs of chunks that have any
}

type acquisition struct{ name, token string }

// run is one acquisition of a lock. To save memory, a successful run keeps no event.
type run struct {
	name   string
	job    string        // see jobOf
	fence  uint64        // 0 without fencing
	weight int           // of event
	at     int64         // its time, in Unix nanoseconds
	event  *source.Event // the event with the most weight; nil after a success
	since  bool          // its lock was found held after the barrier opened
}

func newEnds() *ends {
	return &ends{runs: map[acquisition]*run{}, chunks: map[string][]multilock.Result{}}
}

// weight ranks events by how conclusive they are about a run's outcome. A recorded result is final,
// unless its chunk has open jobs. A broken or lost lock outweighs the holder's own events; but a script
// has ended normally even if its lock was broken before its keeper released it.
func weight(e source.Event) int {
	switch {
	case e.What == source.EventCommitted && e.Chunk != nil && !e.Chunk.Final():
		return 1
	case e.What == source.EventCommitted:
		return 5
	case e.What == source.EventReleased && e.Exit == nil:
		return 4
	case e.What == source.EventBroke:
		return 3
	case e.What == source.EventLost:
		return 2
	case e.What == source.EventReleased:
		return 1
	}
	return 0
}

func (n *ends) add(e source.Event) {
	if weight(e) == 0 && e.What != source.EventAcquired {
		return
	}
	key := acquisition{e.Name, e.Token}
	if e.Token == "" {
		key.token = e.Time.String() // without a token each event counts as an acquisition
	}
	r := n.runs[key]
	if r == nil {
		r = &run{name: e.Name, at: e.Time.UnixNano(), event: &e}
		n.runs[key] = r
	}
	r.fence = max(r.fence, e.Fence)
	r.job = cmp.Or(r.job, jobOf(e))
	if change := cmp.Compare(weight(e), r.weight); change < 0 || change == 0 && e.Time.UnixNano() < r.at {
		return
	}
	r.weight, r.at, r.event = weight(e), e.Time.UnixNano(), &e
	if EndedWell(e) {
		r.event = nil
	}
}

// jobOf identifies a job by the name of its lock. A job in slots may run in any of them, so there
// the command identifies it.
func jobOf(e source.Event) string {
	name, _, slotted := ParseSlotName(e.Name)
	if !slotted {
		return e.Name
	}
	command := e.Command
	if e.Holder != nil {
		command = e.Holder.Command
	}
	if command == "" {
		return "" // another event of the run has the command
	}
	return name + "\x00" + command
}

// EndedWell reports whether an event ends a run successfully: a normal release, or a recorded success. A
// script that released its lock has no exit code.
func EndedWell(e source.Event) bool {
	switch e.What {
	case source.EventCommitted:
		return e.OK() && (e.Chunk == nil || e.Chunk.Recorded == e.Chunk.Done)
	case source.EventReleased:
		return e.Exit == nil || e.OK()
	}
	return false
}

// last returns the last run of each job, sorted by name.
func (n *ends) last() []*run {
	last := map[string]*run{}
	for key, r := range n.runs {
		job := cmp.Or(r.job, key.name)
		if before := last[job]; !r.since && (before == nil || r.after(before)) {
			last[job] = r
		}
	}
	return slices.SortedFunc(maps.Values(last), func(a, b *run) int { return cmp.Compare(a.name, b.name) })
}

// after compares fencing numbers if both runs have one, and clocks otherwise.
func (r *run) after(other *run) bool {
	if r.fence > 0 && other.fence > 0 && r.name == other.name {
		return r.fence > other.fence
	}
	if r.at != other.at {
		return r.at > other.at
	}
	return r.weight < other.weight // a run without an end in the history counts as not done
}

// open returns the last runs without an end in the history. A holder releases its lock before it
// writes the event.
func (n *ends) open() []*run {
	return slices.DeleteFunc(n.last(), func(r *run) bool { return r.weight > 0 })
}

// report adds what is not done to a report.
func (n *ends) report(r *Report) {
	for _, last := range n.last() {
		jobs, read := n.chunks[last.name]
		r.Failed = append(r.Failed, jobs...)
		switch e := last.event; {
		case e == nil:
		case e.What == source.EventBroke:
			r.Crashed = append(r.Crashed, brokenHolding(*e))
		case !read:
			r.Failed = append(r.Failed, failureOf(*e))
		}
	}
}

func brokenHolding(e source.Event) Holding {
	h := Holding{e.Name, multilock.Observation{State: multilock.StateDead, Why: e.Why, Age: source.Unknown, Silence: source.Unknown}}
	h.Observation.Record.Name, h.Observation.Record.Token = e.Name, e.Token
	if e.Holder != nil {
		h.Observation.Record.Holder = *e.Holder
	}
	return h
}

// failureOf makes a result for a run that failed.
func failureOf(e source.Event) multilock.Result {
	r := multilock.Result{
		Name: e.Name, Chunk: e.Chunk, Token: e.Token, By: e.By, User: e.User, Command: e.Command, Signal: e.Signal, Why: e.Why, Attempt: e.Attempt, Final: true,
		Start: e.Time.Add(-e.Held), Duration: e.Held,
	}
	if e.Exit != nil {
		r.Exit = *e.Exit
	}
	switch {
	case e.What == source.EventAcquired:
		r.Foreign = "it began, and how it ended is not known"
	case e.What == source.EventCommitted && e.Exit == nil:
		r.Foreign = "its result was recorded, and is not known"
	case e.What == source.EventLost && (e.Exit == nil || r.OK()):
		r.Foreign = "its lock was lost: " + cmp.Or(e.Why, "the cause is not known")
	}
	return r
}

// knows reports whether the history has a broken lock, or a later end, for an acquisition.
func (n *ends) knows(name, token string) bool {
	r := n.runs[acquisition{name, token}]
	return r != nil && r.weight >= weight(source.Event{What: source.EventBroke})
}
