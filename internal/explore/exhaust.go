package explore

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/multilock/go/internal/simnfs"
)

// Level is how much was played of the schedules with so many faults and preemptions.
type Level struct {
	Faults, Preemptions int
	Schedules, Left     int // Left: those that are known to be missing; each leads to more
}

func (l Level) String() string {
	return fmt.Sprintf("%d preemptions and %d faults: %d, and %d left", l.Preemptions, l.Faults, l.Schedules, l.Left)
}

// Exhaust plays every schedule within the bounds, as long as limit lasts: those without a fault
// or a preemption first, then those with one, and so on. So what is left when the limit ends is
// the most far-fetched, and few states are come to in a worse way first.
func (sc *Scenario) Exhaust(t *testing.T, limit time.Duration) Report {
	s := search{scenario: sc, begin: time.Now(), limit: limit, levels: map[[2]int]*level{}, from: sc.prepare(t)}
	if sc.Remember {
		s.seen = &states{mu: &s.mu, seen: map[simnfs.Sum][]*node{}, ended: map[simnfs.Sum]bool{}, opens: s.opens}
	}
	s.idle = sync.NewCond(&s.mu)
	for cost := range sc.Faults + sc.Preemptions + 1 {
		for faults := range min(cost, sc.Faults) + 1 {
			if cost-faults <= sc.Preemptions {
				at := &level{Level: Level{Faults: faults, Preemptions: cost - faults}}
				s.order, s.levels[[2]int{faults, cost - faults}] = append(s.order, at), at
			}
		}
	}
	s.order[0].open = []prefix{{}}
	var wg sync.WaitGroup
	for range max(sc.Workers, 1) {
		wg.Go(func() { s.work(t) })
	}
	wg.Wait()
	return s.told(t)
}

// search is what its workers share.
type search struct {
	scenario *Scenario
	begin    time.Time
	limit    time.Duration
	seen     *states
	from     *prepared

	mu     sync.Mutex
	idle   *sync.Cond
	busy   int
	levels map[[2]int]*level // by faults and preemptions
	order  []*level          // the cheapest first
	report Report
	wrong  *World
	over   bool
}

// level are the schedules of some cost.
type level struct {
	Level
	open []prefix // to be played
}

// prefix is how a schedule begins, and of which the rest is the default.
type prefix struct {
	picks  []pick
	length int
	from   *node        // the state in which its last choice is made, if that is known
	rests  []simnfs.Sum // what those who rested before it knew
}

type pick struct {
	at     int32
	choice int8
}

func (s *search) work(t *testing.T) {
	for {
		next, at, more := s.next()
		if !more {
			return
		}
		given := Choices{}
		for _, p := range next.picks {
			given[int(p.at)] = int(p.choice)
		}
		w := s.scenario.play(t, schedule{given: given, length: next.length, from: next.from, rests: next.rests}, s.seen, s.from)
		s.played(w, next, at)
	}
}

// next is the cheapest that is open. Others may come of what is being played.
func (s *search) next() (next prefix, at *level, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if s.over || time.Since(s.begin) > s.limit {
			return next, nil, false
		}
		for _, at := range s.order {
			if last := len(at.open) - 1; last >= 0 {
				next, at.open = at.open[last], at.open[:last]
				s.busy++
				return next, at, true
			}
		}
		if s.busy == 0 {
			return next, nil, false
		}
		s.idle.Wait()
	}
}

func (s *search) played(w *World, p prefix, at *level) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.idle.Broadcast()
	s.busy--
	at.Schedules++
	s.report.count(w)
	if w.violation != "" {
		if s.wrong == nil {
			s.wrong = w
		}
		s.over = true
		return
	}
	s.branch(w, p)
}

// branch opens all that differs from what was played in one choice behind what was given. Another
// order is held until it may make a difference.
func (s *search) branch(w *World, p prefix) {
	faults, preemptions := 0, 0
	everyOrder := s.scenario.EveryOrder || s.scenario.threads()
	for at, c := range w.schedule.taken {
		if at >= p.length {
			for choice := 1; choice < c.of; choice++ {
				picks := append(slices.Clip(p.picks), pick{int32(at), int8(choice)}) //nolint:gosec // a few thousand
				h := held{prefix{picks, at + 1, c.at, w.rests[:c.rests:c.rests]}, [2]int{faults + c.faults, preemptions + c.preemptions}}
				if c.faults == 0 && c.at != nil && !everyOrder && !c.at.differs() {
					c.at.held = append(c.at.held, h)
					continue
				}
				s.opens(h)
			}
		}
		if c.pick > 0 {
			faults += c.faults
			preemptions += c.preemptions
		}
	}
}

func (s *search) opens(h held) {
	to := s.levels[h.costs]
	to.open = append(to.open, h.prefix)
}

func (s *search) told(t *testing.T) Report {
	r := s.report
	r.Took = time.Since(s.begin)
	if s.seen != nil {
		r.States = s.seen.count
	}
	if s.wrong != nil {
		return s.scenario.found(t, r, s.wrong)
	}
	r.Complete = true
	for _, at := range s.order {
		at.Left = len(at.open)
		r.Complete = r.Complete && at.Left == 0
		r.Covered = append(r.Covered, at.Level)
	}
	return r
}
