package batch

import (
	"context"
	"errors"
	"sync"

	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// common is what all parts of a batch use: the claimer, the recorder and the exchange.
type common struct {
	src      Source
	grower   source.ManifestGrower // nil if lists cannot grow
	jobs     []Job
	opt      Options
	schedule *schedule
	stops    stops

	taking, working context.Context //nolint:containedctx // the batch's lifetime: for taking jobs, and for those that run
}

// ends reports whether an error with a unit ends the batch in this process. A lost or held lock does
// not.
func (u *common) ends(err error) bool {
	for _, passing := range []error{multilock.ErrHeld, multilock.ErrLost, multilock.ErrUnsure, lockgroup.ErrLingering} {
		if errors.Is(err, passing) {
			return false
		}
	}
	return !u.isEnd(err)
}

// isEnd reports whether an error only means that the batch has ended.
func (u *common) isEnd(err error) bool {
	for _, why := range []error{context.Cause(u.taking), context.Cause(u.working)} {
		if why != nil && errors.Is(err, why) {
			return true
		}
	}
	return false
}

// halt ends the batch if its Halt is reached. Unrecorded results count, too.
func (u *common) halt() {
	if u.opt.Halt.When == HaltNever {
		return
	}
	u.schedule.mu.Lock()
	c := counts{done: u.schedule.done + u.schedule.ended.done, failed: u.schedule.failed + u.schedule.ended.failed}
	total := u.schedule.open + u.schedule.done + u.schedule.failed
	u.schedule.mu.Unlock()
	if !u.opt.Halt.reached(c, total) {
		return
	}
	cause := &HaltError{Halt: u.opt.Halt, Failed: c.failed, Done: c.done}
	if u.opt.Halt.When == HaltNow {
		u.stops.kill(cause)
		return
	}
	u.stops.drain(cause)
}

// stops ends a batch early: first it starts no more jobs, then it ends the running ones. The first cause
// is kept.
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

// drain starts no more jobs.
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
