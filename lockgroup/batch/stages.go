package batch

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock/source"
)

// MaxBarriers bounds the barriers of a list.
const MaxBarriers = 10_000

// BarrierError says that jobs were not run because some before a barrier have failed for good.
// It is a lockgroup.ErrNotDone.
type BarrierError struct {
	After  int // the number of the last job before the barrier
	Failed int // of those before it
	Behind int // jobs that were not run
}

func (e *BarrierError) Error() string {
	return fmt.Sprintf("%d jobs behind the barrier after job %d were not run, because %d before it failed", e.Behind, e.After, e.Failed)
}

// Unwrap makes it one of the errors that say so.
func (e *BarrierError) Unwrap() error { return lockgroup.ErrNotDone }

// stages are the parts into which barriers divide a list. What is known of their jobs only
// grows: each is settled once, on the evidence on which nobody runs it again, so all hosts
// come to the same conclusion, sooner or later. The caller sees to it that one call runs at a
// time.
type stages struct {
	last         []int // the number of the last job of each
	open, failed []int // of each: jobs without a final result, and those that have failed for good
	now          int   // the one that has begun
}

func newStages(jobs int, barriers []int) stages {
	s := stages{last: append(slices.Clone(barriers), jobs)}
	s.open, s.failed = make([]int, len(s.last)), make([]int, len(s.last))
	before := 0
	for i, last := range s.last {
		s.open[i], before = last-before, last
	}
	return s
}

// settled notes that a job has a final result. It reports whether another stage has begun.
func (s *stages) settled(job int, as jobState) (begun bool) {
	i, _ := slices.BinarySearch(s.last, job+1)
	s.open[i]--
	if as == jobFailed {
		s.failed[i]++
	}
	for s.now < len(s.last)-1 && s.open[s.now]+s.failed[s.now] == 0 {
		s.now, begun = s.now+1, true
	}
	return begun
}

// upTo is the number of the last job that may be begun.
func (s *stages) upTo() int { return s.last[s.now] }

// blocked says that no other stage will begin: some job before its barrier has failed for good.
func (s *stages) blocked() bool {
	return s.now < len(s.last)-1 && s.open[s.now] == 0 && s.failed[s.now] > 0
}

// error is for a list that is blocked.
func (s *stages) error() *BarrierError {
	e := &BarrierError{After: s.upTo(), Failed: s.failed[s.now]}
	for _, open := range s.open {
		e.Behind += open
	}
	return e
}

// settle notes what has become of a job, and opens the next stage if it was the last one that
// was waited for.
func (h *hands) settle(job int, as jobState) bool {
	if !h.tally.settle(job, as) {
		return false
	}
	if h.stages.settled(job, as) {
		h.allow(h.stages.upTo())
	}
	return true
}

// over says that nothing is left to be begun, by anybody.
func (h *hands) over() bool { return h.open == 0 || h.stages.blocked() }

// allow opens the units up to a job's number.
func (c *claims) allow(upTo int) {
	c.upTo = upTo
	for i := range c.units {
		if u := &c.units[i]; u.state == unitBehind && u.To <= upTo {
			c.set(i, unitOpen)
		}
	}
}

// admit keeps a new unit closed as long as a barrier stands before it.
func (c *claims) admit(u *unit) {
	u.state = unitOpen
	if u.To > c.upTo {
		u.state = unitBehind
		return
	}
	c.free++
}

// divided divides each stage of a list by itself, and each section: no unit lies on both sides
// of a barrier, and those of a list stay what they are when more is added to it.
func (s *stages) divided(divide func(jobs int) []unit, sections []int) (units []unit) {
	ends := slices.Concat(s.last, sections)
	slices.Sort(ends)
	before := 0
	for _, last := range slices.Compact(ends) {
		for _, u := range divide(last - before) {
			u.Range = source.Range{From: u.From + before, To: u.To + before}
			u.root = len(units)
			units = append(units, u)
		}
		before = last
	}
	return units
}

func (b *Batch) checkBarriers() error {
	if n := len(b.opt.Barriers); n > MaxBarriers {
		return &source.InvalidError{What: "barriers", Got: strconv.Itoa(n), Why: fmt.Sprintf("a list can have %d", MaxBarriers)}
	}
	before := 0
	for _, after := range b.opt.Barriers {
		if after <= before || after >= len(b.jobs) {
			return &source.InvalidError{What: "barrier", Got: strconv.Itoa(after), Why: "barriers stand between jobs, each behind the one before"}
		}
		before = after
	}
	return nil
}
