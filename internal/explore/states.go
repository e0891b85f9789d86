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
	seen  map[simnfs.Sum][]*node // by their sums
	count int
	ended map[simnfs.Sum]bool // states without a choice, and all that their end depends on
	opens func(held)          // has a schedule played
}

// arrival is how a schedule has come to a state in which there is something to choose.
type arrival struct {
	state       simnfs.Sum
	past        Past
	met         []Fate // nil if the past says what matters of them
	faults      int
	last        int // who went on last, if he can go on: others cost a preemption; -1: nobody does
	preemptions int
}

// Past is what checks make of what was before a state.
type Past struct {
	// Excused has a bit for each thing that is excused from now on.
	Excused uint
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
func (s *states) comes(at arrival) (n *node, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := at.state
	sum.Add(at.past.Asked)
	all := s.seen[sum]
	for _, n := range all {
		if n.covers(&at) {
			return n, false
		}
	}
	for _, n := range all { // the same, come to in a better way
		if n.who == int8(at.last) && n.faults == int8(at.faults) && n.excused == at.past.Excused && n.late <= at.past.Late && n.least >= int8(at.preemptions) && slices.Equal(n.met, at.met) { //nolint:gosec // a few
			n.least, n.late = int8(at.preemptions), at.past.Late //nolint:gosec // a few
			return n, true
		}
	}
	n = &node{who: int8(at.last), least: int8(at.preemptions), faults: int8(at.faults), met: slices.Clone(at.met), excused: at.past.Excused, late: at.past.Late} //nolint:gosec // a few
	s.seen[sum] = append(all, n)
	s.count++
	return n, true
}

// ends says that a state without a choice was come to before, in the same way.
func (s *states) ends(at arrival) bool {
	sum := at.state
	for _, number := range []uint64{at.past.Asked, uint64(at.past.Excused), uint64(at.past.Late), uint64(at.last + 1), uint64(at.preemptions)} { //nolint:gosec // a hash
		sum.Add(number)
	}
	for _, fate := range at.met {
		sum.Add(uint64(fate)) //nolint:gosec // a hash
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended[sum] {
		return true
	}
	if len(s.ended) < mostEnded {
		s.ended[sum] = true
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

// among says whether faults are some of others, which are in order.
func among(some, all []Fate) bool {
	for _, fate := range all {
		if len(some) > 0 && some[0] == fate {
			some = some[1:]
		}
	}
	return len(some) == 0
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
	met     []Fate // in order
	excused uint
	late    time.Duration
	faults  int8
	least   int8
	who     int8 // went on last, and can go on; -1: nobody
	own     bool // he changes something by the request that he stands before
	changes uint16
	above   []*node // those that led here at the same time
	held    []held
}

// held are schedules that are not known to make a difference.
type held struct {
	fork  fork
	costs [2]int // faults and preemptions
}

// differs says whether another order may make a difference.
func (n *node) differs() bool {
	if n.who < 0 {
		return n.changes != 0
	}
	return n.own || n.changes&^(1<<n.who) != 0
}

// leads notes that one state leads to another at the same time.
func (s *states) leads(from, to *node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if from == nil || from == to {
		return
	}
	for _, n := range to.above {
		if n == from {
			return
		}
	}
	to.above = append(to.above, from)
	s.change(from, to.changes)
}

// changed notes that somebody has changed something behind a state.
func (s *states) changed(n *node, column int) {
	if n == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if column < 0 {
		n.own = true
		s.change(n, 1<<15)
		return
	}
	if int(n.who) == column && !n.own {
		n.own = true
		s.release(n)
	}
	s.change(n, 1<<column)
}

func (s *states) change(n *node, by uint16) {
	if n.changes|by == n.changes {
		return
	}
	n.changes |= by
	s.release(n)
	for _, above := range n.above {
		s.change(above, by)
	}
}

func (s *states) release(n *node) {
	if n.differs() {
		for _, h := range n.held {
			s.opens(h)
		}
		n.held = nil
	}
}
