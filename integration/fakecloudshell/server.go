package fakecloudshell

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Server is a running server. Its methods are safe for concurrent use.
type Server struct {
	scheme      Scheme
	certificate tls.Certificate // empty with HTTP
	listener    net.Listener
	web         *http.Server
	log         *slog.Logger
	latency     time.Duration
	methods     map[Method]signature
	world       *world
	journal     *journal

	mu      sync.Mutex
	inject  Injector
	late    map[int]lateCall // by the number of the request
	closed  bool
	closing chan struct{}
	running sync.WaitGroup // requests, late calls, and the accepting of connections
}

// New starts a server. The error is about the options, or about listening.
func New(opt Options) (*Server, error) {
	opt = opt.withDefaults()
	if err := opt.validate(); err != nil {
		return nil, fmt.Errorf("fake CloudShell: %w", err)
	}
	s := &Server{
		scheme: opt.Scheme, log: opt.Log, latency: opt.Latency, methods: methods(), world: newWorld(opt), journal: newJournal(),
		inject: Rules(), late: map[int]lateCall{}, closing: make(chan struct{}),
	}
	for _, name := range opt.Policy.Without {
		delete(s.methods, name)
	}
	if err := s.populate(opt); err != nil {
		return nil, fmt.Errorf("fake CloudShell: %w", err)
	}
	if err := s.listen(opt); err != nil {
		return nil, fmt.Errorf("fake CloudShell: %w", err)
	}
	return s, nil
}

func (s *Server) populate(opt Options) error {
	var problems []error
	for _, user := range opt.Users {
		problems = append(problems, s.AddUser(user))
	}
	for _, model := range opt.Models {
		problems = append(problems, s.AddModel(model))
	}
	for _, r := range opt.Reservations {
		problems = append(problems, s.AddReservation(r))
	}
	return errors.Join(problems...)
}

func (s *Server) listen(opt Options) error {
	var err error
	if opt.Scheme == HTTPS {
		if s.certificate, err = selfSigned(); err != nil {
			return err
		}
	}
	if s.listener, err = net.Listen("tcp", opt.Address); err != nil {
		return err
	}
	s.web = &http.Server{
		Handler:  http.HandlerFunc(s.handle),
		ErrorLog: slog.NewLogLogger(opt.Log.Handler(), slog.LevelWarn),
	}
	s.web.SetKeepAlivesEnabled(!opt.Policy.CloseConnections)
	s.running.Go(s.accept)
	return nil
}

func (s *Server) accept() {
	listener := s.listener
	if s.scheme == HTTPS {
		// Without NextProtos there is no HTTP/2, which the real server does not speak.
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{s.certificate}})
	}
	if err := s.web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		s.log.Error("connections are no longer accepted", "error", err)
	}
}

// URL is where the server is, such as http://127.0.0.1:8029; paths follow.
func (s *Server) URL() string { return string(s.scheme) + "://" + s.Address() }

// Address is the host and port it listens on.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Inject makes inject decide about each request from now on. Nil ends all faults.
func (s *Server) Inject(inject Injector) {
	if inject == nil {
		inject = Rules()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inject = inject
}

func (s *Server) fault(c Call) Fault {
	s.mu.Lock()
	inject := s.inject
	s.mu.Unlock()
	return inject(c)
}

// Close ends all connections, and returns when everything that the server does
// has ended. What was not yet carried out never will be. A second Close does nothing.
func (s *Server) Close() error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	for _, call := range s.late {
		call.stop()
	}
	s.mu.Unlock()
	var err error
	if first {
		close(s.closing)
		err = s.web.Close()
	}
	s.running.Wait()
	return err
}

// begin says whether something may still start; then it is waited for until Done.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.running.Add(1)
	}
	return !s.closed
}
