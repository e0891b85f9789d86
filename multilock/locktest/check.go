package locktest

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// Check checks whether the events of all processes together are possible with a correct lock. It finds
//   - two processes that held one lock at the same time, as far as they knew,
//   - fencing tokens that did not grow,
//   - tokens that were used twice,
//   - attempts that failed because of a lock that had been released before they began,
//   - events of a lock that its process did not hold.
//
// A hold begins when the acquisition has returned. It ends when the release is called, when the process is
// informed of a loss or killed, or when its validity ends, whichever comes first. So each hold is a little
// shorter than it really was, and two that overlap are always a fault. An attempt whose outcome is unknown
// is not a hold. The order of the events does not matter. The error joins one error for every fault.
func Check(events []Event) error {
	events = slices.Clone(events)
	slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(a.Time, b.Time) })
	h, err := newHistory(events)
	return errors.Join(err, h.checkOverlaps(), checkFences(events), h.checkRefusals(events))
}

// hold is one acquisition, and the time for which its process relied on it.
type hold struct {
	proc, name, token string
	start, end        time.Duration
	tenure            time.Duration // the end if nothing else ends it
	over              bool          // something else ended it
	released          time.Duration // when the release was confirmed, 0 if it was not
}

// history has the holds of all processes.
type history struct {
	holds  []*hold
	tokens map[string]*hold
	killed map[string]bool // by process
}

// newHistory processes the events in the order of their times.
func newHistory(events []Event) (*history, error) {
	h := &history{tokens: map[string]*hold{}, killed: map[string]bool{}}
	var faults error
	for _, e := range events {
		faults = errors.Join(faults, h.follow(e))
	}
	for _, held := range h.holds {
		if !held.over || held.tenure < held.end {
			held.end = held.tenure
		}
	}
	return h, faults
}

func (h *history) follow(e Event) error {
	switch e.Kind {
	case Acquired:
		return h.begin(e)
	case Killed:
		h.kill(e)
		return nil
	case Refused, Unsure:
		return nil
	case Renewed, Fenced, Releasing, Released, Lost:
	default:
		return fmt.Errorf("unknown kind of event %q", e.Kind)
	}
	held := h.tokens[e.Token]
	if held == nil || held.proc != e.Proc || held.name != e.Name {
		return fmt.Errorf("lock %q: %s has %s %s, which it never acquired", e.Name, e.Proc, e.Kind, e.Token)
	}
	return held.follow(e)
}

func (h *history) begin(e Event) error {
	if earlier := h.tokens[e.Token]; earlier != nil || e.Token == "" {
		return fmt.Errorf("lock %q: %s acquired it with the token %q, which is not a new one", e.Name, e.Proc, e.Token)
	}
	held := &hold{proc: e.Proc, name: e.Name, token: e.Token, start: e.Time, tenure: tenure(e)}
	if h.killed[e.Proc] {
		held.finish(e.Time) // it was still running when its killer set out
	}
	h.holds = append(h.holds, held)
	h.tokens[e.Token] = held
	return nil
}

func tenure(e Event) time.Duration {
	if e.Until == 0 {
		return math.MaxInt64
	}
	return e.Until
}

func (h *history) kill(e Event) {
	h.killed[e.Proc] = true
	for _, held := range h.holds {
		if held.proc == e.Proc {
			held.finish(e.Time)
		}
	}
}

// follow moves the end of a hold.
func (held *hold) follow(e Event) error {
	switch e.Kind {
	case Renewed:
		if e.Start != 0 && e.Start > held.tenure {
			return fmt.Errorf("lock %q: %s renewed %s after its tenure had ended", e.Name, e.Proc, e.Token)
		}
		held.tenure = tenure(e)
	case Releasing, Lost:
		held.finish(e.Time)
	case Released:
		if held.released != 0 {
			return fmt.Errorf("lock %q: %s released %s twice", e.Name, e.Proc, e.Token)
		}
		held.finish(e.Time)
		held.released = e.Time
	}
	return nil
}

// finish ends a hold, unless it has already ended.
func (held *hold) finish(at time.Duration) {
	if !held.over {
		held.over, held.end = true, at
	}
}

// checkOverlaps compares each hold with the longest of those before it.
func (h *history) checkOverlaps() error {
	var faults error
	last := map[string]*hold{}
	slices.SortStableFunc(h.holds, func(a, b *hold) int { return cmp.Compare(a.start, b.start) })
	for _, held := range h.holds {
		if held.end <= held.start {
			continue // it was over before its process knew of it
		}
		before := last[held.name]
		if before != nil && held.start < before.end {
			faults = errors.Join(faults, fmt.Errorf("lock %q: %s (%s) believed in it from %s on, while %s (%s) did so until %s",
				held.name, held.proc, held.token, held.start, before.proc, before.token, before.endText()))
		}
		if before == nil || before.end < held.end {
			last[held.name] = held
		}
	}
	return faults
}

func (held *hold) endText() string {
	if held.end == math.MaxInt64 {
		return "the end"
	}
	return held.end.String()
}

// checkRefusals finds failed attempts that are explained only by an outdated state.
func (h *history) checkRefusals(events []Event) error {
	var faults error
	for _, e := range events {
		if e.Kind != Refused || e.Start == 0 {
			continue
		}
		held := h.tokens[e.Token]
		if held != nil && held.released != 0 && held.released < e.Start {
			faults = errors.Join(faults, fmt.Errorf("lock %q: %s was refused at %s because of %s (%s), which was given back at %s",
				e.Name, e.Proc, e.Start, held.proc, held.token, held.released))
		}
	}
	return faults
}

// checkFences compares each number with those of all calls that had returned when its own call began, and
// checks that all numbers are distinct.
func checkFences(events []Event) error {
	drawn := map[string][]Event{} // by lock, in the order of the returns
	for _, e := range events {
		if e.Kind == Fenced {
			drawn[e.Name] = append(drawn[e.Name], e)
		}
	}
	var faults error
	for _, returned := range drawn {
		faults = errors.Join(faults, checkUnique(returned), checkGrowth(returned))
	}
	return faults
}

func checkUnique(drawn []Event) error {
	owner := map[uint64]Event{}
	var faults error
	for _, e := range drawn {
		if first, twice := owner[e.Fence]; twice {
			faults = errors.Join(faults, fmt.Errorf("lock %q: the fence number %d was given to %s and to %s", e.Name, e.Fence, first.Proc, e.Proc))
		}
		owner[e.Fence] = e
	}
	return faults
}

func checkGrowth(returned []Event) error {
	started := slices.Clone(returned)
	slices.SortStableFunc(started, func(a, b Event) int { return cmp.Compare(begin(a), begin(b)) })
	var faults error
	var highest Event // of the calls that had returned
	next := 0
	for _, e := range started {
		for ; next < len(returned) && returned[next].Time < begin(e); next++ {
			if returned[next].Fence > highest.Fence {
				highest = returned[next]
			}
		}
		if e.Fence < highest.Fence {
			faults = errors.Join(faults, fmt.Errorf("lock %q: %s was given the fence number %d after %s had %d",
				e.Name, e.Proc, e.Fence, highest.Proc, highest.Fence))
		}
	}
	return faults
}

// begin is when a call began or, if that is unknown, when it returned.
func begin(e Event) time.Duration {
	if e.Start == 0 {
		return e.Time
	}
	return e.Start
}
