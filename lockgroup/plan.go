package lockgroup

import (
	"strconv"
	"time"

	"github.com/multilock/go/multilock"
)

// Plan says how often the job of a name may run. The zero value is: once.
type Plan struct {
	// Retries is how many more attempts follow a failure, over all hosts together.
	Retries int
	// Slot is the slot of time that the job runs for, see SlotAt; zero for a job
	// that runs once and for all.
	Slot time.Time
}

// Step is what a Plan says is to be done next.
type Step int

const (
	// Run means that the job is to be run, as the attempt that is told.
	Run Step = iota
	// Done means that the job has succeeded.
	Done
	// Failed means that the job has failed, and is not to be tried again.
	Failed
	// Unclear means that there is a result which cannot be understood. The job
	// counts as run, and nobody knows how it ended.
	Unclear
)

// Next decides what to do, given the last committed result of the name; nil if
// there is none. The number of the attempt goes with Run.
//
// A result that its holder called final stays final, whatever this plan allows:
// others may have taken it for that. A plan for a slot starts anew with each
// one, and leaves those alone that are later than its own.
func (p Plan) Next(last *multilock.Result) (step Step, attempt int) {
	switch {
	case last == nil:
		return Run, 1
	case last.Foreign != "":
		return Unclear, 0
	case last.Slot.Before(p.Slot):
		return Run, 1
	case last.OK():
		return Done, 0
	case last.Final, last.Attempt > p.Retries, !p.Slot.IsZero() && last.Slot.After(p.Slot):
		return Failed, 0
	}
	return Run, last.Attempt + 1
}

// Complete fills in what the plan says about the result of an attempt: its
// number, its slot, and whether it is final.
func (p Plan) Complete(r multilock.Result, attempt int) multilock.Result {
	r.Attempt, r.Slot = attempt, p.Slot
	r.Final = r.OK() || attempt > p.Retries
	return r
}

func (p Plan) check() error {
	if p.Retries < 0 {
		return &multilock.InvalidError{What: "retries", Got: strconv.Itoa(p.Retries), Why: "must not be negative"}
	}
	return nil
}

// SlotAt is the slot of time, every so long since 1970, that is nearest to a
// moment. Nearest, and not the one that has begun: hosts whose clocks start the
// same job less than half a slot early or late mean the same slot.
func SlotAt(now time.Time, every time.Duration) time.Time {
	past := now.UnixNano()
	into := past % int64(every)
	if into < 0 {
		into += int64(every)
	}
	slot := past - into
	if into >= int64(every)-into {
		slot += int64(every)
	}
	return time.Unix(0, slot).UTC()
}
