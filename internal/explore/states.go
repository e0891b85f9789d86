package explore

import (
	"slices"
	"sync"
	"time"

	"github.com/multilock/go/internal/simnfs"
)

// states are those that were come to, by what that took: see [arrival].
type states struct {
	mu    *sync.Mutex
	seen  map[simnfs.Sum]uint32 // the numbers of nodes, by their sums
	nodes arena[node]
	leads arena[lead]
	ended map[simnfs.Sum]struct{} // states without a choice, and all that their end depends on
	forks *forks
	opens func(fork) // has a schedule played
}

// arrival is how a schedule has come to a state in which there is something to choose.
type arrival struct {
	state       simnfs.Sum
	past        Past
	met         faults // none if the past says what matters of them
	faults      int
	last        int // who went on last, if he can go on: others cost a preemption; -1: nobody does
	preemptions int
}

// Past is what checks make of what was before a state.
type Past struct {
	// Excused has a bit for each thing that is excused from now on.
	Excused uint16
	// Late is how much time has passed, less what was allowed for that.
	Late time.Duration
	// Asked is what else they will ask, as a number that differs if that does.
	Asked uint64
}

// comes says whether a state is to be gone on from, and what is kept of it. It is not if all that
// can follow follows from an arrival that is known, at no higher cost:
//
//   - with as many faults or fewer, for more may follow yet;
//   - with the same faults, or some of them, or where nothing is excused that is not after the others: what
//     is wrong after few faults is wrong after more (of a [Scenario] that remembers that is asked); and
//     as late, or later;
//   - with as many preemptions, if the same actor went on last, or if nobody did who could go on,
//     for then each goes on for nothing;
//   - with fewer, if another went on last: that one is left, at the cost of one.
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

// isBetter says that a state was come to now as it was before, but for less.
func (n *node) isBetter(now *node) bool {
	return n.who == now.who && n.faults == now.faults && n.excused == now.excused && n.met == now.met && n.late <= now.late && n.least >= now.least
}

// ends says that a state without a choice was come to before, in the same way.
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

// mostEnded bounds what they take of the memory, to a few hundred megabytes.
const mostEnded = 16 << 20

// covers says that all that can follow an arrival follows from a node.
func (n *node) covers(at *arrival) bool {
	least := at.preemptions
	if n.who >= 0 && int(n.who) != at.last {
		least--
	}
	return int(n.least) <= least && int(n.faults) <= at.faults &&
		n.excused&^at.past.Excused == 0 && n.late >= at.past.Late && among(n.met, at.met)
}

// faults are those that were met, in order, four bits each.
type faults uint32

// mostFaults are as many as there is room for.
const mostFaults = 8

func inOrder(met []Fate) (all faults) {
	for _, fate := range slices.Sorted(slices.Values(met)) {
		all = all<<4 | faults(fate) //nolint:gosec // there are fifteen
	}
	return all
}

// among says whether faults are some of others.
func among(some, all faults) bool {
	for ; all > 0; all >>= 4 {
		if some&15 == all&15 {
			some >>= 4
		}
	}
	return some == 0
}

// sumOf is that of faults, in any order.
func sumOf(met []Fate) (sum simnfs.Sum) {
	for _, fate := range met {
		one := simnfs.Sum(fate) //nolint:gosec // a hash
		one.Add(1)
		sum += one
	}
	return sum
}

// node is a state, and what is known to follow at the same time.
//
// As long as nobody changes anything, in what order requests come makes no difference. So who else
// could go on is held until there is something that a different order may change, in a schedule
// that comes through this state, or through one to which that led at the same time:
//
//   - Somebody is left before a request that changes nothing: what others do meanwhile, until he
//     goes on, which is before time passes, makes no difference but if it changes something.
//     Without that, he may as well be left behind that request, at the same cost. So it takes a
//     change by another.
//   - Before one that changes something: there it makes a difference, so it is done at once when
//     that has been seen.
//   - Nobody is left, for he who went on last cannot: it takes a change by anybody. Without that,
//     all may do all that they will do in any order.
//
// What an actor believes, and what it notes, counts as changes, for others are compared with it.
// What it stands still for, or crashes before, changes nothing at that time.
type node struct {
	late    time.Duration
	next    uint32 // the number of another with the same sum
	above   uint32 // the number of the first lead from those that led here at the same time
	held    uint32 // the forks that are not known to make a difference
	met     faults
	excused uint16
	changes uint16
	faults  int8
	least   int8
	who     int8 // went on last, and can go on; -1: nobody
	own     bool // he changes something by the request that he stands before
}

// lead is that a state led to another, and the number of another lead to that.
type lead struct{ from, next uint32 }

// differs says whether another order may make a difference.
func (n *node) differs() bool {
	if n.who < 0 {
		return n.changes != 0
	}
	return n.own || n.changes&^(1<<n.who) != 0
}

// differs says whether another order may make a difference in a state.
func (s *states) differs(number uint32) bool { return s.nodes.at(number).differs() }

// holds keeps a fork until it may make a difference.
func (s *states) holds(f fork) { s.forks.push(&s.nodes.at(f.from).held, f) }

// leadsTo notes that one state leads to another at the same time.
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

// changed notes that somebody has changed something behind a state.
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

// release opens what was held in a state, in the order in which it was held.
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
