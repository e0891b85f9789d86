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

// Choices are those of a schedule that are not 0, by their place.
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

// schedule answers choices, and keeps what they were.
type schedule struct {
	given               Choices
	random              *rand.Rand // draws what is not given; nil: 0
	odds                int        // one choice in so many is not 0
	taken, of           []int
	preemptions, faults int
}

func (s *schedule) choose(n int) int {
	pick := 0
	if n > 1 {
		at := len(s.taken)
		pick = s.given[at]
		if s.random != nil && s.random.IntN(s.odds) == 0 {
			pick = s.random.IntN(n)
		}
	}
	pick = min(pick, n-1)
	s.taken, s.of = append(s.taken, pick), append(s.of, n)
	return pick
}

// repeats says that what was chosen so far is not all that is given.
func (s *schedule) repeats() bool {
	for at := range s.given {
		if at >= len(s.taken) {
			return true
		}
	}
	return false
}

// states are those that were come to, with the fewest preemptions.
type states map[simnfs.Sum]int

// comes says whether a state is to be gone on from.
func (s states) comes(state simnfs.Sum, preemptions int) bool {
	if least, known := s[state]; known && least <= preemptions {
		return false
	}
	s[state] = preemptions
	return true
}

func (s *schedule) choices() Choices {
	c := Choices{}
	for at, pick := range s.taken {
		if pick > 0 {
			c[at] = pick
		}
	}
	return c
}

// Report is what a search found.
type Report struct {
	Schedules, Requests int
	States              int  // that were told apart
	Complete            bool // there are no others within the bounds
	Took                time.Duration
	Violation           string // "" if there is none
	Choices             Choices
	Trace               string
}

func (r Report) String() string {
	return fmt.Sprintf("%d schedules, %d states, %d steps, %s, complete: %v", r.Schedules, r.States, r.Requests, r.Took.Round(time.Millisecond), r.Complete)
}

// Exhaust plays every schedule within the bounds, as long as limit lasts.
func (sc *Scenario) Exhaust(t *testing.T, limit time.Duration) (r Report) {
	begin := time.Now()
	given := Choices{}
	var seen states
	if sc.Remember {
		seen = states{}
	}
	for {
		w := sc.play(t, schedule{given: given}, seen)
		r.count(w)
		r.States = len(seen)
		r.Took = time.Since(begin)
		if w.violation != "" {
			return sc.found(t, r, w)
		}
		if given = following(w.schedule); given == nil {
			r.Complete = true
			return r
		}
		if r.Took > limit {
			return r
		}
	}
}

// following is the next schedule in order: the last choice that can be another one is.
func following(s schedule) Choices {
	for at := len(s.taken) - 1; at >= 0; at-- {
		if s.taken[at]+1 < s.of[at] {
			s.taken[at]++
			s.taken = s.taken[:at+1]
			return s.choices()
		}
	}
	return nil
}

// Sample plays schedules that are drawn from a seed.
func (sc *Scenario) Sample(t *testing.T, seed uint64, schedules int) (r Report) {
	begin := time.Now()
	for n := range schedules {
		random := rand.New(rand.NewPCG(seed, uint64(n))) //nolint:gosec // to be repeated
		w := sc.play(t, schedule{random: random, odds: 4 << random.IntN(5)}, nil)
		r.count(w)
		r.Took = time.Since(begin)
		if w.violation != "" {
			return sc.found(t, r, w)
		}
	}
	return r
}

// Replay plays one schedule.
func (sc *Scenario) Replay(t *testing.T, c Choices) (r Report) {
	w := sc.play(t, schedule{given: c}, nil)
	r.count(w)
	r.Violation, r.Choices, r.Trace = w.violation, w.schedule.choices(), w.table()
	return r
}

func (r *Report) count(w *World) {
	r.Schedules++
	r.Requests += len(w.lines)
}

// found shrinks what failed: each choice is left out without which it still fails so.
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
