package explore

import (
	"sync"

	"github.com/multilock/go/internal/simnfs"
)

// states are those that were come to, by what that took: see [arrival].
type states struct {
	mu    *sync.Mutex
	seen  map[simnfs.Sum]*node
	opens func(held) // has a schedule played
}

// arrival is how a schedule has come to a state in which there is something to choose.
type arrival struct {
	state       simnfs.Sum
	met         []Fate
	last        int   // who went on last, if he can go on: others cost a preemption; -1: nobody does
	ready       []int // who can go on
	preemptions int
}

// comes says whether a state is to be gone on from, and what is kept of it. It is not if all that
// can follow follows from an arrival that is known, at no higher cost:
//
//   - with the same faults, or some of them: what is wrong after few faults is wrong after more
//     (of a [Scenario] that remembers that is asked), and more may follow yet;
//   - with as many preemptions, if the same actor went on last, or if nobody did who could go on,
//     for then each goes on for nothing;
//   - with fewer, if another went on last: that one is left, at the cost of one.
func (s *states) comes(at arrival) (n *node, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.known(at); n != nil {
		return n, false
	}
	key := at.key(at.met, at.last)
	n = s.seen[key]
	if n == nil {
		n = &node{who: int8(at.last)} //nolint:gosec // a few
		s.seen[key] = n
	}
	n.least = int8(at.preemptions) //nolint:gosec // a few
	return n, true
}

func (s *states) known(at arrival) *node {
	for kept := range 1 << len(at.met) {
		fewer := at.met
		if kept != 1<<len(at.met)-1 {
			fewer = nil
			for i, fate := range at.met {
				if kept>>i&1 == 1 {
					fewer = append(fewer, fate)
				}
			}
		}
		for _, last := range append(at.ready, -1) {
			n, least := s.seen[at.key(fewer, last)], at.preemptions
			if last != at.last && last != -1 {
				least--
			}
			if n != nil && int(n.least) <= least {
				return n
			}
		}
	}
	return nil
}

func (at arrival) key(met []Fate, last int) simnfs.Sum {
	sum := at.state
	sum.Add(uint64(sumOf(met)))
	sum.Add(uint64(last + 1)) //nolint:gosec // a hash
	return sum
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
	least   int8
	who     int8 // went on last, and can go on; -1: nobody
	own     bool // he changes something by the request that he stands before
	changes uint16
	above   []*node // those that led here at the same time
	held    []held
}

// held is a schedule that is not known to make a difference.
type held struct {
	prefix prefix
	costs  [2]int // faults and preemptions
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
