package explore

import (
	"fmt"
	"math/bits"
	"sync"
	"testing"
	"time"

	"github.com/multilock/go/internal/simnfs"
)

// Level counts the schedules with some number of faults and preemptions.
type Level struct {
	Faults, Preemptions int
	Schedules, Left     int // Left: known schedules that were not played; each leads to more
}

func (l Level) String() string {
	return fmt.Sprintf("%d preemptions and %d faults: %d, and %d left", l.Preemptions, l.Faults, l.Schedules, l.Left)
}

// Exhaust plays every schedule within the bounds until the limit: first those without a fault or a
// preemption, then those with one, and so on. So those left at the limit are the least likely ones, and
// few states are first reached at a higher cost than needed.
func (sc *Scenario) Exhaust(t *testing.T, limit time.Duration) Report {
	if sc.Faults > mostFaults {
		t.Fatalf("more than %d faults", mostFaults)
	}
	s := search{scenario: sc, begin: time.Now(), limit: limit, levels: map[[2]int8]*level{}, from: sc.prepare(t)}
	if sc.Remember {
		s.seen = &states{mu: &s.mu, seen: map[simnfs.Sum]uint32{}, ended: map[simnfs.Sum]struct{}{}, forks: &s.forks, opens: s.opens}
	}
	s.idle = sync.NewCond(&s.mu)
	for cost := range sc.Faults + sc.Preemptions + 1 {
		for faults := range min(cost, sc.Faults) + 1 {
			if cost-faults <= sc.Preemptions {
				at := &level{Level: Level{Faults: faults, Preemptions: cost - faults}}
				s.order, s.levels[[2]int8{int8(faults), int8(cost - faults)}] = append(s.order, at), at
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

// search is the shared state of the workers.
type search struct {
	scenario *Scenario
	begin    time.Time
	limit    time.Duration
	seen     *states
	from     *prepared

	mu     sync.Mutex
	idle   *sync.Cond
	busy   int
	forks  forks
	levels map[[2]int8]*level // by faults and preemptions
	order  []*level           // by increasing cost
	report Report
	wrong  *World
	over   bool
}

// level has the schedules of one cost.
type level struct {
	Level
	open uint32 // the forks to play
}

func (s *search) work(t *testing.T) {
	for {
		next, at, more := s.next()
		if !more {
			return
		}
		s.played(s.scenario.play(t, next.schedule(), s.seen, s.from), next, at)
	}
}

// next returns the cheapest open schedule. Schedules that are being played may add others.
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
			if at.Left > 0 {
				s.busy++
				return s.latest(at), at, true
			}
		}
		if s.busy == 0 {
			return next, nil, false
		}
		s.idle.Wait()
	}
}

// latest returns the last one of an open level.
func (s *search) latest(at *level) prefix {
	next := s.forks.at(at.open).take()
	if at.Left--; next.choices == 0 {
		s.forks.pop(&at.open)
	}
	return next
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

// branch opens all schedules that differ from a played one in one choice after the given ones. It holds
// another order until that may make a difference.
func (s *search) branch(w *World, p prefix) {
	faults, preemptions := int8(0), int8(0)
	everyOrder := s.scenario.EveryOrder || s.scenario.threads()
	trunk := p.grows(w.rests)
	for at, c := range w.schedule.taken {
		choices := uint16(1)<<c.of - 2
		if s.seen != nil && !everyOrder && !c.looked {
			choices &^= c.behind
		}
		if at >= p.length() && choices != 0 {
			f := fork{trunk: trunk, from: c.at, choices: choices, at: uint16(at), rests: c.rests, faults: faults + c.faults, preemptions: preemptions + c.preemptions} //nolint:gosec // a few thousand
			if c.faults == 0 && c.at != 0 && !everyOrder && !s.seen.differs(c.at) {
				s.seen.holds(f)
			} else {
				s.opens(f)
			}
		}
		if c.pick > 0 {
			faults += c.faults
			preemptions += c.preemptions
		}
	}
}

func (s *search) opens(f fork) {
	to := s.levels[[2]int8{f.faults, f.preemptions}]
	s.forks.push(&to.open, f)
	to.Left += bits.OnesCount16(f.choices)
}

func (s *search) told(t *testing.T) Report {
	r := s.report
	r.Took = time.Since(s.begin)
	if s.seen != nil {
		r.States = int(s.seen.nodes.count)
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
