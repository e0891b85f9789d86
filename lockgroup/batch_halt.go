package lockgroup

import (
	"fmt"
	"strconv"

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
	return fmt.Sprintf("halted after %d successes and %d failures", e.Done, e.Failed)
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
func (h Halt) reached(c agendaCount, total int) bool {
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

// halt ends the batch if it is to be halted.
func (b *Batch) halt() {
	c := b.agenda.count()
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
