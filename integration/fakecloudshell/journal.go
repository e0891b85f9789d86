package fakecloudshell

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
)

// Request is what became of a request until now.
type Request struct {
	Call
	// Connection is the client's address: requests with the same one came over the
	// same connection.
	Connection string
	Header     http.Header // without secrets
	// Executed says that the request was carried out, whatever came of it. A call
	// that was refused for its token, or was not understood, is not.
	Executed bool
	// Failure is what became of it: nil for success, or if it was not carried out.
	Failure *Failure
	// Status is that of the answer; 0 if there was none yet. An answer to which the
	// server said Torn or Endless counts.
	Status int
	// Done says that the server has nothing more to do for it. An execution OnceGone
	// does not count.
	Done bool
}

// journal is the log of requests.
type journal struct {
	mu       sync.Mutex
	requests []Request
	counts   map[Method]int
	changed  chan struct{} // closed at the next change
}

func newJournal() *journal {
	return &journal{counts: map[Method]int{}, changed: make(chan struct{})}
}

// arrive writes a request down, and numbers it.
func (j *journal) arrive(r Request) Call {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.counts[r.Method]++
	r.N, r.Nth = len(j.requests), j.counts[r.Method]
	j.requests = append(j.requests, r)
	j.tell()
	return r.Call
}

// note changes what is written of the n-th request.
func (j *journal) note(n int, change func(*Request)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	change(&j.requests[n])
	j.tell()
}

func (j *journal) tell() {
	close(j.changed)
	j.changed = make(chan struct{})
}

func (j *journal) snapshot() ([]Request, <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.requests), j.changed
}

// Requests are all requests until now, in the order of their arrival. Those that
// were not understood are among them, without a method.
func (s *Server) Requests() []Request {
	requests, _ := s.journal.snapshot()
	return requests
}

// Count is how many requests of a method there were.
func (s *Server) Count(method Method) int {
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()
	return s.journal.counts[method]
}

// Wait returns when the log of requests is as the caller wants it to be. The
// error is that of the context.
func (s *Server) Wait(ctx context.Context, condition func([]Request) bool) error {
	for {
		requests, changed := s.journal.snapshot()
		if condition(requests) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for the server, which had %d requests: %w", len(requests), context.Cause(ctx))
		}
	}
}

// Arrived is for Wait: there were n requests of a method.
func Arrived(method Method, n int) func([]Request) bool {
	return counted(n, func(r Request) bool { return r.Method == method })
}

// Executed is for Wait: n requests of a method have been carried out.
func Executed(method Method, n int) func([]Request) bool {
	return counted(n, func(r Request) bool { return r.Method == method && r.Executed })
}

func counted(n int, fits func(Request) bool) func([]Request) bool {
	return func(requests []Request) bool {
		count := 0
		for _, r := range requests {
			if fits(r) {
				count++
			}
		}
		return count >= n
	}
}
