package fakecloudshell

import (
	"maps"
	"slices"
	"time"
)

// lateCall is a call whose client has been cut off or answered, and that is still
// to be carried out.
type lateCall struct {
	execute func()
	timer   *time.Timer // nil if only Land carries it out
}

func (l lateCall) stop() {
	if l.timer != nil {
		l.timer.Stop()
	}
}

// postpone carries the n-th request out after a time, or when Land is called.
func (s *Server) postpone(n int, after time.Duration, execute func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	call := lateCall{execute: execute}
	if after > 0 {
		call.timer = time.AfterFunc(after, func() { s.land(n) })
	}
	s.late[n] = call
}

// Land carries out all calls that are to be carried out later, in the order of
// their arrival, and says how many there were.
func (s *Server) Land() int {
	s.mu.Lock()
	waiting := slices.Sorted(maps.Keys(s.late))
	s.mu.Unlock()
	landed := 0
	for _, n := range waiting {
		if s.land(n) {
			landed++
		}
	}
	return landed
}

// land carries one of them out, once.
func (s *Server) land(n int) bool {
	if !s.begin() {
		return false
	}
	defer s.running.Done()
	s.mu.Lock()
	call, waiting := s.late[n]
	delete(s.late, n)
	s.mu.Unlock()
	if waiting {
		call.stop()
		call.execute()
	}
	return waiting
}
