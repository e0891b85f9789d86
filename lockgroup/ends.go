package lockgroup

import (
	"cmp"
	"maps"
	"slices"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// ends is how runs ended, as the events of a history tell. They may come in any order:
// each host writes its own, by its own clock.
type ends struct {
	runs   map[acquisition]*run
	chunks map[string][]multilock.Result // the jobs that are not done, of chunks with such
}

type acquisition struct{ name, token string }

// run is one acquisition of a lock. A history may tell of very many, and nearly all of
// them have ended well: of those there is no event kept.
type run struct {
	name   string
	job    string        // what was run: see jobOf
	fence  uint64        // 0 if it drew none
	weight int           // of the event that says most of how it ended
	at     int64         // when that was, in nanoseconds since 1970
	told   *source.Event // that event, nil if it is a good end
	since  bool          // its lock was found held since the barrier opened: by it, or still although it is dead
}

func newEnds() *ends {
	return &ends{runs: map[acquisition]*run{}, chunks: map[string][]multilock.Result{}}
}

// weight says how much an event tells of the end of its run. A recorded result is the
// last word, but for a chunk of which something is left to be done; that a lock was broken
// or lost outweighs what its holder believes. A script whose lock somebody broke faster than
// its keeper gave it back has ended all the same.
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

// add takes an event into account.
func (n *ends) add(e source.Event) {
	if weight(e) == 0 && e.What != source.EventAcquired {
		return
	}
	key := acquisition{e.Name, e.Token}
	if e.Token == "" {
		key.token = e.Time.String() // of a lock that names no acquisition: each is another
	}
	r := n.runs[key]
	if r == nil {
		r = &run{name: e.Name, at: e.Time.UnixNano(), told: &e}
		n.runs[key] = r
	}
	r.fence = max(r.fence, e.Fence)
	r.job = cmp.Or(r.job, jobOf(e))
	if change := cmp.Compare(weight(e), r.weight); change < 0 || change == 0 && e.Time.UnixNano() < r.at {
		return
	}
	r.weight, r.at, r.told = weight(e), e.Time.UnixNano(), &e
	if endedWell(e) {
		r.told = nil
	}
}

// jobOf tells jobs apart: by the name of their lock. Under one of several slots anything
// may run, and the next time in another slot: there it is the command.
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
		return "" // another event of that run has it
	}
	return name + "\x00" + command
}

// endedWell says whether an event is the good end of a run. A script that gave its lock
// back has no exit code, and nothing is wrong with that.
func endedWell(e source.Event) bool {
	switch e.What {
	case source.EventCommitted:
		return e.OK() && (e.Chunk == nil || e.Chunk.Recorded == e.Chunk.Done)
	case source.EventReleased:
		return e.Exit == nil || e.OK()
	}
	return false
}

// EndedWell says whether an event of a history tells that somebody was done with a lock, and
// that nothing is wrong with that; so it is of a recorded success.
func EndedWell(e source.Event) bool { return endedWell(e) }

// last is the last run of each job, in the order of their names.
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

// after compares fencing numbers, which no clock has part in, where both runs of a lock
// have one.
func (r *run) after(other *run) bool {
	if r.fence > 0 && other.fence > 0 && r.name == other.name {
		return r.fence > other.fence
	}
	if r.at != other.at {
		return r.at > other.at
	}
	return r.weight < other.weight // what has no end in the history is not done
}

// open are the jobs of whose last run no end is told: those that have just given their
// lock back write it down after that.
func (n *ends) open() []*run {
	return slices.DeleteFunc(n.last(), func(r *run) bool { return r.weight > 0 })
}

// report adds what is not done.
func (n *ends) report(r *Report) {
	for _, last := range n.last() {
		jobs, told := n.chunks[last.name]
		r.Failed = append(r.Failed, jobs...)
		switch e := last.told; {
		case e == nil:
		case e.What == source.EventBroke:
			r.Crashed = append(r.Crashed, brokenHolding(*e))
		case !told:
			r.Failed = append(r.Failed, failureOf(*e))
		}
	}
}

func brokenHolding(e source.Event) Holding {
	h := Holding{e.Name, multilock.Sighting{State: multilock.StateDead, Why: e.Why, Age: source.Unknown, Silence: source.Unknown}}
	h.Sighting.Record.Name, h.Sighting.Record.Token = e.Name, e.Token
	if e.Holder != nil {
		h.Sighting.Record.Holder = *e.Holder
	}
	return h
}

// failureOf is a run that failed, as a result.
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
		r.Foreign = "it began, and nothing tells how it ended"
	case e.What == source.EventCommitted && e.Exit == nil:
		r.Foreign = "its result was recorded, and nothing tells which"
	case e.What == source.EventLost && (e.Exit == nil || r.OK()):
		r.Foreign = "its lock was lost: " + cmp.Or(e.Why, "nothing tells why")
	}
	return r
}

// knows says whether the history tells of an acquisition that it was broken.
func (n *ends) knows(name, token string) bool {
	r := n.runs[acquisition{name, token}]
	return r != nil && r.weight >= weight(source.Event{What: source.EventBroke})
}
