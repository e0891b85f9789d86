package batch

import (
	"fmt"
	"strconv"

	"github.com/multilock/go/multilock/source"
)

// Halt defines when a batch ends before all of its jobs have run. It counts the final results of the
// whole list, from all hosts and all times. The zero value means never.
type Halt struct {
	When HaltWhen
	What HaltWhat
	// Number is how many results end the batch; or Percent is their percentage of the list.
	Number  int
	Percent float64
}

// HaltWhen selects what happens to running jobs.
type HaltWhen int

const (
	// HaltNever means that all jobs run.
	HaltNever HaltWhen = iota
	// HaltSoon lets running jobs end.
	HaltSoon
	// HaltNow ends running jobs; these are not recorded, and can run again.
	HaltNow
)

// HaltWhat selects which results count.
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
