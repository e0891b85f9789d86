package explore

import (
	"slices"
	"sync"
	"time"

	"github.com/multilock/go/internal/simnfs"
)

// states are the visited states, with the cost of reaching them: see [arrival].
type states struct {
	mu    *sync.Mutex
	seen  map[simnfs.Sum]uint32 // the numbers of nodes, by their sums
	nodes arena[node]
	leads arena[lead]
	ended map[simnfs.Sum]struct{} // states without a choice, with all that their outcome depends on
	forks *forks
	opens func(fork) // queues a schedule to play
}

// arrival describes how a schedule has reached a state with a choice.
type arrival struct {
	state       simnfs.Sum
	past        Past
	met         faults // empty if past covers it
	faults      int
	last        int // the actor that ran last, if it can continue, so that others cost a preemption; else -1
	preemptions int
}

// Past is the past of a state as far as it matters for checks.
type Past struct {
	// Excused has a bit for each kind of violation that is excused from now on.
	Excused uint16
	// Late is how much time has passed, minus the time that is allowed for it.
	Late time.Duration
	// Asked is a hash of the other data that checks use.
	Asked uint64
}

// comes reports whether to continue from a state, and records the arrival. It returns false if everything
// that can follow also follows from a known arrival at no higher cost:
//
//   - with no more faults, because more can still follow;
//   - with a subset of the faults, or without excuses that the new arrival lacks: a violation after few
//     faults is also one after more (required of a [Scenario] with Remember); and at least as late;
//   - with no more preemptions, if the same actor ran last, or if the actor that ran last cannot continue,
//     because then each choice is free;
//   - with fewer preemptions, if another actor ran last: leaving that actor costs one.
func (s *states) comes(at arrival) (number uint32, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := at.state
	sum.Add(at.past.Asked)
	last := s.seen[sum]
	for number := last; number != 0; number = s.nodes.at(number).next {
		if s.nodes.at(number).covers(&at) {
			return number, false
		}
	}
	arrived := node{who: int8(at.last), least: int8(at.preemptions), faults: int8(at.faults), met: at.met, excused: at.past.Excused, late: at.past.Late, next: last} //nolint:gosec // a few
	for number := last; number != 0; number = s.nodes.at(number).next {
		if n := s.nodes.at(number); n.isBetter(&arrived) {
			n.least, n.late = arrived.least, arrived.late
			return number, true
		}
	}
	number = s.nodes.add()
	*s.nodes.at(number), s.seen[sum] = arrived, number
	return number, true
}

// isBetter reports whether the state was reached now as before, but at a lower cost.
func (n *node) isBetter(now *node) bool {
	return n.who == now.who && n.faults == now.faults && n.excused == now.excused && n.met == now.met && n.late <= now.late && n.least >= now.least
}

// ends reports whether a state without a choice was reached before in the same way.
func (s *states) ends(at arrival) bool {
	sum := at.state
	for _, number := range []uint64{at.past.Asked, uint64(at.past.Excused), uint64(at.past.Late), uint64(at.last + 1), uint64(at.preemptions)} { //nolint:gosec // a hash
		sum.Add(number)
	}
	sum.Add(uint64(at.met))
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.ended[sum]; known {
		return true
	}
	if len(s.ended) < mostEnded {
		s.ended[sum] = struct{}{}
	}
	return false
}

// mostEnded limits the memory for ended, to a few hundred megabytes.
const mostEnded = 16 << 20

// covers reports whether everything that can follow an arrival follows from a node.
func (n *node) covers(at *arrival) bool {
	least := at.preemptions
	if n.who >= 0 && int(n.who) != at.last {
		least--
	}
	return int(n.least) <= least && int(n.faults) <= at.faults &&
		n.excused&^at.past.Excused == 0 && n.late >= at.past.Late && among(n.met, at.met)
}

// faults are the faults so far, sorted, four bits each.
type faults uint32

// mostFaults is how many fit.
const mostFaults = 8

func inOrder(met []Fate) (all faults) {
	for _, fate := range slices.Sorted(slices.Values(met)) {
		all = all<<4 | faults(fate) //nolint:gosec // there are fifteen fates
	}
	return all
}

// among reports whether some is a subset of all.
func among(some, all faults) bool {
	for ; all > 0; all >>= 4 {
		if some&15 == all&15 {
			some >>= 4
		}
	}
	return some == 0
}

// sumOf hashes faults in any order.
func sumOf(met []Fate) (sum simnfs.Sum) {
	for _, fate := range met {
		one := simnfs.Sum(fate) //nolint:gosec // a hash
		one.Add(1)
		sum += one
	}
	return sum
}

// node is a state, with what is known to follow at the same time.
//
// As long as no actor changes anything, the order of requests makes no difference. So alternatives to the
// actor that ran last are held until another order may make a difference, in a schedule through this
// state, or through a state that it led to at the same time:
//
//   - If that actor is left before a request that changes nothing, the others' actions before it
//     continues (before time passes) only make a difference if they change something. Otherwise it may as
//     well be left after that request, at the same cost. So the fork needs a change by another actor.
//   - If it is left before a request that changes something, the order makes a difference, so the fork is
//     opened as soon as that is known.
//   - If no actor is left, because the one that ran last cannot continue, the fork needs a change by any
//     actor. Otherwise all actors may act in any order.
//
// The lock on which an actor relies, and its notes, count as changes, because other actors are compared
// with them. A pause or a crash before a request changes nothing at that time.
type node struct {
	late    time.Duration
	next    uint32 // the number of another node with the same sum
	above   uint32 // the number of the first lead from the states that led here at the same time
	held    uint32 // the forks that are not known to make a difference
	met     faults
	excused uint16
	changes uint16
	faults  int8
	least   int8
	who     int8 // the actor that ran last, and can continue; -1 if there is none
	own     bool // its pending request changes something
}

// lead records that a state led to another one. next is the number of another lead to the same state.
type lead struct{ from, next uint32 }

// differs reports whether another order may make a difference.
func (n *node) differs() bool {
	if n.who < 0 {
		return n.changes != 0
	}
	return n.own || n.changes&^(1<<n.who) != 0
}

// differs reports whether another order may make a difference in a state.
func (s *states) differs(number uint32) bool { return s.nodes.at(number).differs() }

// holds keeps a fork until it may make a difference.
func (s *states) holds(f fork) { s.forks.push(&s.nodes.at(f.from).held, f) }

// leadsTo records that one state leads to another at the same time.
func (s *states) leadsTo(from, to uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if from == 0 || from == to {
		return
	}
	n := s.nodes.at(to)
	last := &n.above
	for ; *last != 0; last = &s.leads.at(*last).next {
		if s.leads.at(*last).from == from {
			return
		}
	}
	*last = s.leads.add()
	s.leads.at(*last).from = from
	s.change(from, n.changes)
}

// changed records a change by an actor after a state.
func (s *states) changed(number uint32, column int) {
	if number == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.nodes.at(number)
	if column < 0 {
		n.own = true
		s.change(number, 1<<15)
		return
	}
	if int(n.who) == column && !n.own {
		n.own = true
		s.release(n)
	}
	s.change(number, 1<<column)
}

func (s *states) change(number uint32, by uint16) {
	n := s.nodes.at(number)
	if n.changes|by == n.changes {
		return
	}
	n.changes |= by
	s.release(n)
	for l := n.above; l != 0; l = s.leads.at(l).next {
		s.change(s.leads.at(l).from, by)
	}
}

// release opens the forks that were held in a state, in the same order.
func (s *states) release(n *node) {
	if !n.differs() {
		return
	}
	first := uint32(0)
	for n.held != 0 {
		s.forks.push(&first, s.forks.pop(&n.held))
	}
	for first != 0 {
		s.opens(s.forks.pop(&first))
	}
}
