package explore

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/multilock/go/internal/simnfs"
)

// Choices are the choices of a schedule that are not 0, by their place.
type Choices map[int]int

func (c Choices) String() string {
	var b strings.Builder
	b.WriteString("explore.Choices{")
	for i, at := range slices.Sorted(maps.Keys(c)) {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%d: %d", at, c[at])
	}
	return b.String() + "}"
}

// schedule makes choices, and records them.
type schedule struct {
	given               Choices
	length              int          // number of given choices
	from                uint32       // the state in which the last given choice is made
	rests               []simnfs.Sum // the states at the rests before that
	random              *rand.Rand   // draws the other choices; 0 if nil
	odds                int          // one choice of this many is not 0
	repeated            int          // this many are as given
	traced              bool         // record a trace
	taken               []taken
	preemptions, faults int
}

// taken is one choice, the number of options, and the cost of not taking the default.
type taken struct {
	pick, of            uint8
	preemptions, faults int8
	rests               uint16 // number of rests before it
	at                  uint32 // the state in which it is made, if that was compared
	behind              uint16 // bits of the options to pause after the request
	looked              bool   // these make a difference: the actor read a clock before its next request
}

func (s *schedule) choose(n, preemptions, faults int) int {
	pick := 0
	if n > 1 {
		pick = s.given[len(s.taken)]
		if s.random != nil && len(s.taken) >= s.repeated && s.random.IntN(s.odds) == 0 {
			pick = s.random.IntN(n)
		}
	}
	pick = min(pick, n-1)
	s.taken = append(s.taken, taken{pick: uint8(pick), of: uint8(n), preemptions: int8(preemptions), faults: int8(faults)})
	if pick > 0 {
		s.preemptions += preemptions
		s.faults += faults
	}
	return pick
}

// repeats reports whether not all given choices have been made.
func (s *schedule) repeats() bool { return len(s.taken) < s.length }

func (s *schedule) choices() Choices {
	c := Choices{}
	for at, taken := range s.taken {
		if taken.pick > 0 {
			c[at] = int(taken.pick)
		}
	}
	return c
}

// Report is the result of a search.
type Report struct {
	Schedules, Requests int
	States              int     // distinct states
	Sights              int     // distinct observations of drawn schedules: see [World.sight]
	Complete            bool    // all schedules within the bounds were played
	Covered             []Level // schedules by their faults and preemptions
	Took                time.Duration
	Violation           string // "" without one
	Choices             Choices
	Trace               string
}

func (r Report) String() string {
	if r.Sights > 0 {
		return fmt.Sprintf("%d schedules, %d sights, %d steps, %s", r.Schedules, r.Sights, r.Requests, r.Took.Round(time.Millisecond))
	}
	text := fmt.Sprintf("%d schedules, %d states, %d steps, %s, complete: %v", r.Schedules, r.States, r.Requests, r.Took.Round(time.Millisecond), r.Complete)
	if !r.Complete && len(r.Covered) > 0 {
		text += fmt.Sprint(", ", r.Covered)
	}
	return text
}

// Replay plays one schedule.
func (sc *Scenario) Replay(t *testing.T, c Choices) (r Report) {
	w := sc.play(t, schedule{given: c, traced: true}, nil, nil)
	r.count(w)
	r.Violation, r.Choices, r.Trace = w.violation, w.schedule.choices(), w.table()
	return r
}

func (r *Report) count(w *World) {
	r.Schedules++
	r.Requests += w.steps
}

// found minimises a failing schedule: it drops each choice without which the same failure occurs. It plays
// the result again for the trace.
func (sc *Scenario) found(t *testing.T, r Report, w *World) Report {
	least := sc.Replay(t, w.schedule.choices())
	for smaller := true; smaller; {
		smaller = false
		for at := range least.Choices {
			without := maps.Clone(least.Choices)
			delete(without, at)
			tried := sc.Replay(t, without)
			if tried.Violation != "" && len(tried.Choices) < len(least.Choices) {
				least, smaller = tried, true
				break
			}
		}
	}
	r.Violation, r.Choices, r.Trace = least.Violation, least.Choices, least.Trace
	if r.Violation == "" {
		r.Violation, r.Choices, r.Trace = w.violation+" (and not again, when it was repeated)", w.schedule.choices(), w.table()
	}
	return r
}
