package batch

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"github.com/multilock/go/multilock/source"
)

// Halt says when a batch ends before all of its jobs have run. It counts the final results of the
// whole list, from all hosts and all times. The zero value means never.
type Halt struct {
	When HaltWhen
	What HaltWhat
	// Number is how many results end the batch; or Percent is their share of the list.
	Number  int
	Percent float64
}

// HaltWhen says what happens to running jobs.
type HaltWhen int

const (
	// HaltNever means that all jobs run.
	HaltNever HaltWhen = iota
	// HaltSoon lets running jobs end.
	HaltSoon
	// HaltNow ends running jobs; they are not recorded, and can run again.
	HaltNow
)

// HaltWhat says which results count.
type HaltWhat int

const (
	// HaltFail counts failures.
	HaltFail HaltWhat = iota
	// HaltSuccess counts successes.
	HaltSuccess
	// HaltDone counts both.
	HaltDone
)

// HaltError means that the Halt of a batch ended it.
type HaltError struct {
	Halt   Halt
	Failed int
	Done   int
}

func (e *HaltError) Error() string {
	return fmt.Sprintf("halted: %d done, %d failed", e.Done, e.Failed)
}

func (h Halt) check() error {
	switch {
	case h.When == HaltNever:
		return nil
	case h.Percent != 0 && h.Number != 0:
		return &source.InvalidError{What: "halt", Got: strconv.Itoa(h.Number), Why: "there is a percentage as well; choose one"}
	case h.Percent == 0 && h.Number < 1:
		return &source.InvalidError{What: "halt", Got: strconv.Itoa(h.Number), Why: "must be at least 1"}
	case h.Percent < 0 || h.Percent > 100:
		return &source.InvalidError{What: "halt", Got: fmt.Sprint(h.Percent), Why: "must be a percentage up to 100"}
	}
	return nil
}

// reached reports whether the counts reach the limit.
func (h Halt) reached(c counts, total int) bool {
	if h.When == HaltNever {
		return false
	}
	n := c.failed
	switch h.What {
	case HaltSuccess:
		n = c.done
	case HaltDone:
		n = c.done + c.failed
	case HaltFail:
	}
	if h.Percent > 0 {
		return float64(n)*100 >= h.Percent*float64(total)
	}
	return n >= h.Number
}

// halt ends the batch if its Halt is reached. Results that are not recorded yet count, too.
func (b *Batch) halt() {
	if b.opt.Halt.When == HaltNever {
		return
	}
	b.localQueue.mu.Lock()
	c := counts{done: b.localQueue.done + b.localQueue.ended.done, failed: b.localQueue.failed + b.localQueue.ended.failed}
	b.localQueue.mu.Unlock()
	if !b.opt.Halt.reached(c, len(b.jobs)) {
		return
	}
	cause := &HaltError{Halt: b.opt.Halt, Failed: c.failed, Done: c.done}
	if b.opt.Halt.When == HaltNow {
		b.stops.kill(cause)
		return
	}
	b.stops.drain(cause)
}

// stops ends a batch early: the taking of jobs, and then the running jobs. The first cause stays.
type stops struct {
	mu    sync.Mutex
	cause error
	take  context.CancelCauseFunc
	work  context.CancelCauseFunc
}

func (s *stops) begin(take, work context.CancelCauseFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take, s.work = take, work
	if s.cause != nil {
		take(s.cause)
	}
}

// drain stops taking jobs.
func (s *stops) drain(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cause == nil {
		s.cause = cause
	}
	if s.take != nil {
		s.take(s.cause)
	}
}

// kill also ends the running jobs.
func (s *stops) kill(cause error) {
	s.drain(cause)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.work != nil {
		s.work(cause)
	}
}

func (s *stops) why() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cause
}
