package report

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/multilock/go/multilock/source"
)

// acquisition has the events of one acquisition of a lock. Any of them can be missing: a batch only
// records results, and lines can be lost.
type acquisition struct {
	name, token string
	acquired    *source.Event
	committed   []*source.Event // one per attempt
	ended       *source.Event   // released or lost
	broke       *source.Event
}

// key identifies an acquisition.
type key struct{ name, token string }

// acquisitions groups events by acquisition, in the order of their first events.
func acquisitions(events []source.Event) []*acquisition {
	var all []*acquisition
	known := map[key]*acquisition{}
	for i := range events {
		e := &events[i]
		k := key{e.Name, e.Token}
		t := known[k]
		if t == nil || e.Token == "" {
			t = &acquisition{name: e.Name, token: e.Token}
			known[k] = t
			all = append(all, t)
		}
		t.add(e)
	}
	return slices.DeleteFunc(all, (*acquisition).empty)
}

func (t *acquisition) add(e *source.Event) {
	switch e.What {
	case source.EventAcquired:
		t.acquired = e
	case source.EventCommitted:
		if e.Chunk == nil { // a chunk's result carries the results of its jobs
			t.committed = append(t.committed, e)
		}
	case source.EventReleased, source.EventLost:
		if t.ended == nil || e.What == source.EventLost {
			t.ended = e
		}
	case source.EventBroke:
		if t.broke == nil {
			t.broke = e
		}
	}
}

func (t *acquisition) empty() bool {
	return t.acquired == nil && t.ended == nil && t.broke == nil && len(t.committed) == 0
}

// runs returns the attempts with recorded results, and then the work without a result.
func (t *acquisition) runs() []Run {
	var runs []Run
	from := t.start()
	slices.SortStableFunc(t.committed, func(a, b *source.Event) int { return cmp.Or(a.Tick.Compare(b.Tick), cmp.Compare(a.Attempt, b.Attempt)) })
	for _, e := range t.committed {
		r := runOf(e)
		r.State, r.Start, r.End = stateOfExit(e.Exit), later(from, e.Time.Add(-e.Held)), e.Time
		runs, from = append(runs, r), e.Time
	}
	if t.hasUnrecorded() {
		runs = append(runs, t.unrecordedRun(from))
	}
	if len(runs) > 0 {
		t.complete(&runs[0], &runs[len(runs)-1])
	}
	return runs
}

// start returns when the lock was acquired, zero if unknown.
func (t *acquisition) start() time.Time {
	switch {
	case t.acquired != nil:
		return t.acquired.Time
	case t.ended != nil && t.ended.Held > 0:
		return t.ended.Time.Add(-t.ended.Held)
	}
	return time.Time{}
}

// hasUnrecorded reports whether there was work whose result was not recorded.
func (t *acquisition) hasUnrecorded() bool {
	if len(t.committed) == 0 {
		return true
	}
	last := t.committed[len(t.committed)-1]
	return t.ended != nil && (t.ended.Attempt > last.Attempt || t.ended.Tick.After(last.Tick))
}

// unrecordedRun returns the run without a recorded result.
func (t *acquisition) unrecordedRun(from time.Time) Run {
	var r Run
	switch {
	case t.ended != nil:
		r = runOf(t.ended)
		r.State, r.Start, r.End = t.stateOfEnd(), from, t.end()
	case t.broke != nil:
		r = t.crashed()
		r.Start = from
	default:
		r = runOf(t.acquired)
		r.State, r.Start = Open, from
	}
	if t.acquired != nil { // another process may have released the lock with its token
		by := t.acquired
		r.Host, r.Machine, r.PID, r.User, r.Command, r.Fence = by.By.Host, by.By.Machine, by.By.PID, by.User, by.Command, by.Fence
	}
	return r
}

// crashed is the run of a holder whose lock was broken.
func (t *acquisition) crashed() Run {
	r := Run{State: Dead, End: t.broke.Time, Why: t.broke.Why, Token: t.token}
	if h := t.broke.Holder; h != nil {
		r.Host, r.Machine, r.PID, r.User, r.Command = h.Host, h.Machine, h.PID, h.User, h.Command
	}
	return r
}

// end prefers the holder's clock, because another host may have released the lock.
func (t *acquisition) end() time.Time {
	if t.acquired != nil && t.ended.By.Host != t.acquired.By.Host && t.ended.Held > 0 {
		return t.acquired.Time.Add(t.ended.Held)
	}
	return t.ended.Time
}

func (t *acquisition) stateOfEnd() State {
	e := t.ended
	switch {
	case e.What == source.EventLost:
		return Lost
	case e.Attempt > 0:
		return Interrupted // otherwise its result would be recorded
	case e.Exit != nil:
		return stateOfExit(e.Exit)
	case e.Why != "" && e.Command != "" && !strings.HasPrefix(e.Command, scriptsCommand):
		return Failed // the command could not be started
	}
	return Released
}

// scriptsCommand is the prefix of the command that "multilock acquire" records. A script has no exit code.
const scriptsCommand = "acquire "

func stateOfExit(exit *int) State {
	if exit != nil && *exit == 0 {
		return Done
	}
	return Failed
}

// complete adds the wait to the first run, and a forced break to the last one.
func (t *acquisition) complete(first, last *Run) {
	if t.acquired != nil {
		first.Waited = t.acquired.Waited.Seconds()
	}
	if t.broke != nil {
		b := t.broke
		last.Broken = &Breaking{Time: b.Time, Host: b.By.Host, PID: b.By.PID, User: b.User, Why: b.Why}
	}
}

func runOf(e *source.Event) Run {
	return Run{
		Host: e.By.Host, Machine: e.By.Machine, PID: e.By.PID, User: e.User, Attempt: e.Attempt, Exit: e.Exit, Signal: e.Signal,
		Why: e.Why, Output: e.Output, Command: e.Command, Fence: e.Fence, Token: e.Token,
		Tick: e.Tick, Missed: e.Missed,
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// clockGaps finds clock differences that the history proves. Fencing numbers give the true order of
// holders: if a later holder wrote an earlier time than its predecessor, its clock was behind by at
// least the difference. That is only a lower bound, so no clock can be corrected with it.
func clockGaps(all []*acquisition) []ClockGap {
	fenced := map[string][]*acquisition{}
	for _, t := range all {
		if t.acquired != nil && t.acquired.Fence > 0 {
			fenced[t.name] = append(fenced[t.name], t)
		}
	}
	largest := map[[2]string]ClockGap{}
	for _, name := range slices.Sorted(maps.Keys(fenced)) {
		order := fenced[name]
		slices.SortFunc(order, func(a, b *acquisition) int { return cmp.Compare(a.acquired.Fence, b.acquired.Fence) })
		for i := 1; i < len(order); i++ {
			gap, ok := gapBetween(order[i-1], order[i])
			if pair := [2]string{gap.Ahead, gap.Behind}; ok && gap.AtLeast > largest[pair].AtLeast {
				largest[pair] = gap
			}
		}
	}
	return slices.SortedFunc(maps.Values(largest), func(a, b ClockGap) int {
		return cmp.Or(cmp.Compare(b.AtLeast, a.AtLeast), cmp.Compare(a.Ahead, b.Ahead), cmp.Compare(a.Behind, b.Behind))
	})
}

func gapBetween(earlier, after *acquisition) (ClockGap, bool) {
	ahead, behind := earlier.acquired.By.Host, after.acquired.By.Host
	gap := earlier.whileHeld().Sub(after.acquired.Time)
	if ahead == behind || gap <= 0 {
		return ClockGap{}, false
	}
	return ClockGap{Ahead: ahead, Behind: behind, AtLeast: gap.Seconds(), Name: earlier.name}, true
}

// whileHeld returns the last time that was written while the lock was certainly held, zero after a
// break or a loss. The release is recorded later, when the lock may already have a new holder.
func (t *acquisition) whileHeld() time.Time {
	if t.ended == nil || t.ended.What != source.EventReleased || t.broke != nil {
		return time.Time{}
	}
	last := t.acquired.Time
	for _, e := range t.committed {
		last = later(last, e.Time)
	}
	return last
}
