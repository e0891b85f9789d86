package explore

import (
	"fmt"
	"math/bits"
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
	open []fork // to be played
}

// trunk is what schedules have in common that differ from one that was played in one choice: what that
// was given, and what those who rested knew.
type trunk struct {
	picks []pick
	rests []simnfs.Sum
}

// fork are the choices at one place in a schedule that were not made there, and cost the same. There are
// many, so a fork is small.
type fork struct {
	trunk     *trunk
	from      *node // the state in which the choice is made, if that is known
	choices   uint32
	at, rests uint16 // the place, and how often somebody had rested before
}

type pick struct {
	at     uint16
	choice uint8
}

// prefix is how a schedule begins, and of which the rest is the default.
type prefix struct {
	picks []pick
	fork
}

// length is that of what is given.
func (p *prefix) length() int {
	if len(p.picks) == 0 {
		return 0
	}
	return int(p.at) + 1
}

// take takes one choice off a fork.
func (f *fork) take() prefix {
	choice := bits.TrailingZeros32(f.choices)
	f.choices &^= 1 << choice
	return prefix{append(slices.Clip(f.trunk.picks), pick{f.at, uint8(choice)}), *f} //nolint:gosec // a few
}

func (s *search) work(t *testing.T) {
	for {
		next, at, more := s.next()
		if !more {
			return
		}
		given, from := Choices{}, schedule{length: next.length(), from: next.from}
		for _, p := range next.picks {
			given[int(p.at)] = int(p.choice)
		}
		if from.given = given; next.trunk != nil {
			from.rests = next.trunk.rests[:next.rests:next.rests]
		}
		s.played(s.scenario.play(t, from, s.seen, s.from), next, at)
	}
}

// next is the cheapest that is open. Others may come of what is being played.
func (s *search) next() (next prefix, at *level, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.report.Schedules == 0 && s.busy == 0 {
		s.busy++
		return next, s.order[0], true
	}
	for {
		if s.over || time.Since(s.begin) > s.limit {
			return next, nil, false
		}
		for _, at := range s.order {
			if next, more = at.pop(); more {
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

// pop is the latest that is open.
func (l *level) pop() (next prefix, more bool) {
	last := len(l.open) - 1
	if last < 0 {
		return next, false
	}
	next = l.open[last].take()
	if l.Left--; l.open[last].choices == 0 {
		l.open[last] = fork{}
		l.open = l.open[:last]
	}
	return next, true
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
	trunk := &trunk{p.picks, w.rests}
	for at, c := range w.schedule.taken {
		if at >= p.length() && c.of > 1 {
			f := fork{trunk, c.at, 1<<c.of - 2, uint16(at), uint16(c.rests)} //nolint:gosec // a few thousand
			h := held{f, [2]int{faults + c.faults, preemptions + c.preemptions}}
			if c.faults == 0 && c.at != nil && !everyOrder && !c.at.differs() {
				c.at.held = append(c.at.held, h)
			} else {
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
	to.open = append(to.open, h.fork)
	to.Left += bits.OnesCount32(h.fork.choices)
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
		r.Complete = r.Complete && at.Left == 0
		r.Covered = append(r.Covered, at.Level)
	}
	return r
}
