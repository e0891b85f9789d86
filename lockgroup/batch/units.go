package batch

import (
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/multilock/source"
)

// unit is what is claimed with one lock: a chunk of the list, or a single job where the
// source keeps no chunks.
type unit struct {
	source.Range
	// root is the number of the chunk of the schedule that it is, or of which it was given
	// back, from 0: where there is news of it on the board.
	root int
	// of is the unit of which it was given back, whose record says so; the zero Range for a
	// chunk of the schedule.
	of source.Range
	// fence is added to the fencing numbers that its lock gives: those under which its jobs
	// ran before they were given back are smaller.
	fence uint64
	state unitState
	// left says of a part that its holder has left it, though something of it is recorded.
	left bool
	// retracted says of a part that it was none any more when it was tried: that its lock is free
	// is no news.
	retracted bool
}

type unitState uint8

const (
	unitOpen      unitState = iota
	unitBehind              // a barrier stands before it
	unitTaken               // in this process's hands, or tried by it
	unitElsewhere           // somebody else held it when it was tried
	unitFinal               // nothing of it is left to be done
)

const (
	maxChunk = 64 // jobs: a claim costs as much as two or three commits
	// chunkShare is the part of what is left of a list that is claimed at a time: large
	// chunks first, and single jobs at the end, so that nobody is left with a large one.
	chunkShare = 4
)

// schedule divides a list into chunks. Every host does it in the same way.
func schedule(jobs int) (units []unit) {
	for from := 1; from <= jobs; {
		left := jobs - from + 1
		n := max(1, min(maxChunk, left/chunkShare))
		units = append(units, unit{Range: source.Range{From: from, To: from + n - 1}, root: len(units)})
		from += n
	}
	return units
}

// singles are the jobs of a list, each claimed by itself.
func singles(jobs int) []unit {
	units := make([]unit, jobs)
	for i := range units {
		units[i] = unit{Range: source.Range{From: i + 1, To: i + 1}, root: i}
	}
	return units
}

func (u *unit) length() int { return u.To - u.From + 1 }

// name is that of a unit's lock, and of its result.
func (b *Batch) name(u *unit) string {
	if b.chunks == nil {
		return b.jobs[u.From-1].Name
	}
	return joblist.ChunkName(u.Range)
}

// claims are the units of a list, and which of them to try next. The caller sees to it that
// one call runs at a time.
type claims struct {
	units []unit
	parts map[source.Range]int // those that are not in the schedule, by their numbers
	// next is the first unit that may be open. One of the width next ones is tried: the
	// first, as long as nobody else is met there.
	next, width int
	random      bool
	chance      func(n int64) int64 // draws a number below n
	upTo        int                 // the number of the last job before the barrier that stands
	free        int                 // units that are open
	elsewhere   map[int]bool
	company     bool // others were met
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

// set notes what has become of a unit. One that is final stays so.
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

// met widens the choice: others are there, too. went narrows it again.
func (c *claims) met()  { c.width, c.company = min(c.width*widening, maxWidth), true }
func (c *claims) went() { c.width = max(c.width/2, 1) }

// add takes in a chunk that was given back, unless it is known.
func (c *claims) add(u unit) {
	if _, known := c.parts[u.Range]; known {
		return
	}
	c.admit(&u)
	c.parts[u.Range] = len(c.units)
	c.units = append(c.units, u)
}

// finish notes that nothing is left to be done of a chunk of the schedule, and of what was given
// back of it.
func (c *claims) finish(root int) {
	c.set(root, unitFinal)
	for _, i := range c.parts {
		if c.units[i].root == root {
			c.set(i, unitFinal)
		}
	}
}

// reopen takes back that a unit is final of which another was said to be given back.
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

// someElsewhere are up to n of those that others hold, from one that is drawn on, so that hosts
// look at different ones.
func (c *claims) someElsewhere(n int) []int {
	all := slices.Sorted(maps.Keys(c.elsewhere))
	if len(all) == 0 {
		return nil
	}
	first := c.chance(int64(len(all)))
	return slices.Concat(all[first:], all[:first])[:min(n, len(all))]
}
