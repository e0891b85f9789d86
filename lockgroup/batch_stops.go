package lockgroup

import (
	"context"
	"sync"
)

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
