package batch

import (
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/multilock/source"
)

// unit is what one lock claims: a chunk of the list, or a part of one that was given back.
type unit struct {
	source.Range
	// root is the index of its chunk in the schedule, which selects its byte in the progress map.
	root int
	// of is the unit that gave this part back; zero for a chunk of the schedule.
	of source.Range
	// fence is added to the lock's fencing numbers, so that they are larger than those of its jobs'
	// earlier attempts, before the jobs were given back.
	fence uint64
	state unitState
	// left means that a recorded part's lock was free at the last inspection.
	left bool
	// retracted means that the part was no longer given back when it was tried; ignore that its lock is
	// free.
	retracted bool
}

type unitState uint8

const (
	unitOpen      unitState = iota
	unitBehind              // behind a barrier
	unitTaken               // held or tried by this process
	unitElsewhere           // held by another process when tried
	unitFinal               // nothing left to do
)

const (
	maxChunk = 64 // in jobs: a claim costs as much as two or three commits
	// A chunk is 1/chunkShare of the rest of the list: large chunks first and single jobs at the end, so
	// that all hosts end at about the same time.
	chunkShare = 4
)

// divide divides a list into chunks. All hosts must divide it in the same way.
func divide(jobs int) (units []unit) {
	for from := 1; from <= jobs; {
		left := jobs - from + 1
		n := max(1, min(maxChunk, left/chunkShare))
		units = append(units, unit{Range: source.Range{From: from, To: from + n - 1}, root: len(units)})
		from += n
	}
	return units
}

func (u *unit) length() int { return u.To - u.From + 1 }

// name returns the name of a unit's lock and result.
func (u *unit) name() string { return joblist.ChunkName(u.Range) }

// claims are the units of a list, and which to try next. Calls must not run concurrently.
type claims struct {
	units []unit
	parts map[source.Range]int // units that are not in the original schedule
	// next is the first unit that may be open. Any of the next width open units may be tried; width is 1
	// without contention.
	next, width int
	random      bool
	chance      func(n int64) int64 // draws a number below n
	upTo        int                 // number of the last job before the next barrier
	free        int                 // open units
	elsewhere   map[int]bool
	company     bool // other hosts work on this list
}

const (
	widening = 8
	maxWidth = 8192
)

func newClaims(units []unit, upTo int, random bool) *claims {
	c := &claims{units: units, parts: map[source.Range]int{}, width: 1, random: random, upTo: upTo, chance: rand.Int64N, elsewhere: map[int]bool{}}
	for i := range units {
		c.admit(&units[i])
	}
	return c
}

// pick takes an open unit.
func (c *claims) pick() (i int, found bool) {
	for c.next < len(c.units) && c.units[c.next].state != unitOpen {
		c.next++
	}
	width, seen := c.width, 0
	if c.random {
		width = len(c.units)
	}
	for k := c.next; k < len(c.units) && seen < width; k++ {
		if c.units[k].state != unitOpen {
			continue
		}
		if seen++; c.chance(int64(seen)) == 0 {
			i, found = k, true
		}
	}
	if found {
		c.set(i, unitTaken)
	}
	return i, found
}

// set changes the state of a unit, unless it is final.
func (c *claims) set(i int, state unitState) {
	u := &c.units[i]
	if u.state == unitFinal {
		return
	}
	if u.state == unitOpen {
		c.free--
	}
	u.state = state
	delete(c.elsewhere, i)
	switch state {
	case unitOpen:
		c.free++
		c.next = min(c.next, i)
	case unitElsewhere:
		c.elsewhere[i] = true
	case unitBehind, unitTaken, unitFinal:
	}
}

// met reacts to contention: it widens the choice to more units. went narrows the choice again.
func (c *claims) met() { c.width, c.company = min(c.width*widening, maxWidth), true }

func (c *claims) went() { c.width = max(c.width/2, 1) }

// add adds a part that was given back, unless it is known.
func (c *claims) add(u unit) {
	if _, known := c.parts[u.Range]; known {
		return
	}
	c.admit(&u)
	c.parts[u.Range] = len(c.units)
	c.units = append(c.units, u)
}

// finish marks a chunk of the schedule and its parts as final.
func (c *claims) finish(root int) {
	c.set(root, unitFinal)
	for _, i := range c.parts {
		if c.units[i].root == root {
			c.set(i, unitFinal)
		}
	}
}

// reopen reverts the final state of a unit that gave a part back.
func (c *claims) reopen(of source.Range, root int) {
	i, part := c.parts[of]
	if !part {
		i = root
	}
	if u := &c.units[i]; u.state == unitFinal {
		u.state = unitTaken
		c.set(i, unitOpen)
	}
}

// anyElsewhere returns a random unit of another holder, so that hosts inspect different ones.
func (c *claims) anyElsewhere() (i int, found bool) {
	all := slices.Sorted(maps.Keys(c.elsewhere))
	if len(all) == 0 {
		return 0, false
	}
	return all[c.chance(int64(len(all)))], true
}

func shuffle(jobs []int) {
	rand.Shuffle(len(jobs), func(i, k int) { jobs[i], jobs[k] = jobs[k], jobs[i] })
}
