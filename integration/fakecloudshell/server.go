package fakecloudshell

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"testing"
	"time"
)

// Server is a running server. Its methods are safe for concurrent use.
type Server struct {
	web     *httptest.Server // nil if it is asked by [Server.ServeHTTP] alone
	latency time.Duration
	world   *world

	mu      sync.Mutex
	inject  Injector
	counts  map[Method]int
	late    []*lateCall // in the order of their arrival
	closing chan struct{}
}

// Start starts a server on the loopback interface, until the test ends.
func Start(t testing.TB, opt Options) *Server {
	t.Helper()
	s := New(opt)
	s.web = httptest.NewUnstartedServer(s)
	s.web.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that do not trust it, and answers that break off
	s.web.Config.SetKeepAlivesEnabled(!opt.Policy.CloseConnections)
	if opt.Scheme == HTTPS {
		s.web.StartTLS()
	} else {
		s.web.Start()
	}
	t.Cleanup(s.close)
	return s
}

// New is a server that listens nowhere. Its connections break off with a panic, as net/http has it.
func New(opt Options) *Server {
	return &Server{latency: opt.Latency, world: newWorld(opt), inject: At("", 0, Fault{}), counts: map[Method]int{}, closing: make(chan struct{})}
}

// close ends all that waits. What was not yet carried out never will be.
func (s *Server) close() {
	close(s.closing)
	s.web.Close()
	for _, call := range s.takeLate() {
		call.cancel()
	}
}

// URL is where the server is, such as http://127.0.0.1:8029; paths follow.
func (s *Server) URL() string { return s.web.URL }

// Address is the host and port it listens on.
func (s *Server) Address() string { return s.web.Listener.Addr().String() }

// WriteCA writes the certificate that clients of an HTTPS server must trust into a
// file, as PEM.
func (s *Server) WriteCA(path string) error {
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.web.Certificate().Raw})
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	return nil
}

// Inject makes inject decide about each request from now on. Nil ends all faults.
func (s *Server) Inject(inject Injector) {
	if inject == nil {
		inject = At("", 0, Fault{})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inject = inject
}

// fault counts a request, and says what happens to it.
func (s *Server) fault(c Call) Fault {
	s.mu.Lock()
	s.counts[c.Method]++
	inject := s.inject
	s.mu.Unlock()
	return inject(c)
}

// Count is how many requests of a method there were.
func (s *Server) Count(method Method) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[method]
}

// lateCall is a call whose client has been cut off or answered, and that is still
// to be carried out.
type lateCall struct {
	execute func() // once
	cancel  func()
}

// postpone carries a call out after a time, or when Land is called; never by itself if
// that time is 0.
func (s *Server) postpone(after time.Duration, execute func()) {
	call := &lateCall{execute: sync.OnceFunc(execute), cancel: func() {}}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late = append(s.late, call)
	if after > 0 {
		timer := time.AfterFunc(after, func() { s.land(call) })
		call.cancel = func() { timer.Stop() }
	}
}

func (s *Server) takeLate() []*lateCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	late := s.late
	s.late = nil
	return late
}

// Land carries out all calls that are to be carried out later, in the order of
// their arrival, and says how many there were.
func (s *Server) Land() int {
	late := s.takeLate()
	for _, call := range late {
		call.cancel()
		call.execute()
	}
	return len(late)
}

// land carries out a call whose time has come.
func (s *Server) land(call *lateCall) {
	s.mu.Lock()
	s.late = slices.DeleteFunc(s.late, func(c *lateCall) bool { return c == call })
	s.mu.Unlock()
	call.execute()
}
