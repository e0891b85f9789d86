package batch

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock/source"
)

// MaxBarriers is the largest number of barriers in a list.
const MaxBarriers = 10_000

// BarrierError means that jobs did not run because jobs before a barrier have failed and get no more
// attempts. It is a lockgroup.ErrNotDone.
type BarrierError struct {
	After  int // number of the last job before the barrier
	Failed int // jobs before it that failed
	Behind int // jobs that did not run
}

func (e *BarrierError) Error() string {
	return fmt.Sprintf("%d jobs behind the barrier after job %d were not run, because %d before it failed", e.Behind, e.After, e.Failed)
}

// Unwrap makes errors.Is(err, lockgroup.ErrNotDone) true.
func (e *BarrierError) Unwrap() error { return lockgroup.ErrNotDone }

// stages are the sections of a list between barriers. A job is settled once, by a final result, so all
// hosts come to the same conclusion. Calls must not run concurrently.
type stages struct {
	last         []int // number of the last job of each stage
	open, failed []int // per stage: jobs without a final result, and failures
	now          int   // the stage that has begun
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

// settled counts a final result. It reports whether another stage has begun.
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

// upTo returns the number of the last job that may begin.
func (s *stages) upTo() int { return s.last[s.now] }

// blocked reports whether failures before the next barrier keep it closed.
func (s *stages) blocked() bool {
	return s.now < len(s.last)-1 && s.open[s.now] == 0 && s.failed[s.now] > 0
}

// error describes a blocked list.
func (s *stages) error() *BarrierError {
	e := &BarrierError{After: s.upTo(), Failed: s.failed[s.now]}
	for _, open := range s.open {
		e.Behind += open
	}
	return e
}

// over reports whether no job is left to begin on any host, as far as the list was read.
func (q *schedule) over() bool { return q.open == 0 || q.stages.blocked() || q.endsRound() }

// allow opens the units up to a job's number.
func (c *claims) allow(upTo int) {
	c.upTo = upTo
	for i := range c.units {
		if u := &c.units[i]; u.state == unitBehind && u.To <= upTo {
			c.set(i, unitOpen)
		}
	}
}

// admit adds a new unit, closed if it is behind a barrier.
func (c *claims) admit(u *unit) {
	u.state = unitOpen
	if u.To > c.upTo {
		u.state = unitBehind
		return
	}
	c.free++
}

// divided divides each stage and each section separately: no unit crosses a barrier, and appending to
// the list changes no units.
func (s *stages) divided(sections []int) (units []unit) {
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

func (o *Options) checkBarriers(jobs int) error {
	if n := len(o.Barriers); n > MaxBarriers {
		return &source.InvalidError{What: "barriers", Got: strconv.Itoa(n), Why: fmt.Sprintf("a list can have %d", MaxBarriers)}
	}
	before := 0
	for _, after := range o.Barriers {
		if after <= before || after >= jobs {
			return &source.InvalidError{What: "barrier", Got: strconv.Itoa(after), Why: "barriers stand between jobs, each behind the one before"}
		}
		before = after
	}
	return nil
}
