package batch

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"github.com/multilock/go/multilock/source"
)

// Halt says when a batch ends before all of its jobs have been run. It counts the
// final results of the whole list, whoever ran the jobs and whenever. The zero
// value is: never.
type Halt struct {
	When HaltWhen
	What HaltWhat
	// Number is how many results it takes; or Percent is their share of the list, in
	// percent.
	Number  int
	Percent float64
}

// HaltWhen says what becomes of the jobs that run.
type HaltWhen int

const (
	// HaltNever means that all jobs are run.
	HaltNever HaltWhen = iota
	// HaltSoon lets the jobs that run end.
	HaltSoon
	// HaltNow ends them; they are not recorded, and can be run again.
	HaltNow
)

// HaltWhat says which results count.
type HaltWhat int

const (
	// HaltFail counts those that have failed.
	HaltFail HaltWhat = iota
	// HaltSuccess counts those that have succeeded.
	HaltSuccess
	// HaltDone counts both.
	HaltDone
)

// HaltError says that a batch was halted by its Halt.
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

// reached says whether the counts are those at which to halt.
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

// halt ends the batch if it is to be halted. What has ended here counts at once, though it
// is about to be recorded.
func (b *Batch) halt() {
	if b.opt.Halt.When == HaltNever {
		return
	}
	b.hands.mu.Lock()
	c := counts{done: b.hands.done + b.hands.ended.done, failed: b.hands.failed + b.hands.ended.failed}
	b.hands.mu.Unlock()
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

// stops is how a batch is ended before its time: once for taking jobs, once for
// those that run. The first cause stays.
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

// drain ends the taking of jobs.
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

// kill ends the jobs that run, too.
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
