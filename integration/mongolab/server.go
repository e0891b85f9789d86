package mongolab

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Server is a database behind a proxy. It is safe for concurrent use.
type Server struct {
	options  Options
	place    place
	database string
	listener net.Listener
	journal  *journal

	// turn is held while the embedded server executes a command.
	turn        sync.Mutex
	repetitions *repetitions // guarded by turn

	changing sync.Mutex // held while the server is started, stopped or closed
	embedded *embedded  // guarded by changing; nil while stopped, and with a real server

	mu      sync.Mutex
	backend string // address of the server behind the proxy; empty while stopped
	conns   map[*conn]struct{}

	running sync.WaitGroup
}

// Open starts a server, which Close ends. Tests use Start.
func Open(opt Options) (*Server, error) {
	place, err := opt.place()
	if err != nil {
		return nil, err
	}
	s := &Server{
		options: opt, place: place, journal: newJournal(), repetitions: newRepetitions(),
		database: "mongolab_" + strings.ToLower(rand.Text()), conns: map[*conn]struct{}{},
	}
	if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("mongolab: listen for clients: %w", err)
	}
	if err := s.Start(); err != nil {
		return nil, errors.Join(err, s.listener.Close())
	}
	s.running.Go(s.accept)
	return s, nil
}

// Close stops the server and closes all connections. On a real server it drops Database.
func (s *Server) Close() error {
	s.Stop()
	err := s.listener.Close()
	s.running.Wait()
	if s.place.real != nil {
		return errors.Join(err, dropDatabase(s.place.real, s.database))
	}
	return err
}

// URI is the URI for clients. It stays the same across restarts.
func (s *Server) URI() string {
	uri := url.URL{Scheme: "mongodb", Host: s.listener.Addr().String(), Path: "/"}
	query := url.Values{}
	if s.place.real != nil {
		uri.User, uri.Path, query = s.place.real.User, s.place.real.Path, s.place.real.Query()
		query.Del("compressors")
	}
	if s.options.ReplicaSet {
		query.Set("replicaSet", setName)
	} else {
		query.Set("directConnection", "true") // a real replica set would send clients past the proxy
	}
	uri.RawQuery = query.Encode()
	return uri.String()
}

// Database returns a name that no other Server uses. On a real server, Close drops this database.
func (s *Server) Database() string { return s.database }

// Real reports whether a real server is behind the proxy.
func (s *Server) Real() bool { return s.place.real != nil }

// Inject sets the Injector from the next command on, which gets number 0. So a test can prepare without
// faults. nil ends all faults.
func (s *Server) Inject(inject Injector) { s.journal.setInjector(inject) }

// Counts returns the number of commands since Open, without upkeep.
func (s *Server) Counts() Counts { return s.journal.counted() }

// Log returns the last few thousand commands in order of arrival, without upkeep.
func (s *Server) Log() []Exchange { return s.journal.exchanges() }

// CutConnections closes all connections, like a network failure. A delayed command is not executed; a
// command that the server is executing is.
func (s *Server) CutConnections() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.cut()
	}
}

// accept accepts clients until the listener is closed.
func (s *Server) accept() {
	for {
		client, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.running.Go(func() { s.serve(client) })
	}
}

// serve serves a connection. While the server is stopped, connections are closed at once; the port
// stays in use, so that no other server gets our clients.
func (s *Server) serve(client net.Conn) {
	address := s.address()
	if address == "" {
		_ = client.Close()
		return
	}
	const patience = 10 * time.Second
	backend, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		_ = client.Close()
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &conn{
		server: s, client: client, backend: backend, cancel: cancel,
		requests: make(chan message), ended: make(chan struct{}),
	}
	if !s.admit(c, address) {
		c.cut()
	}
	c.serve(ctx)
	s.forget(c)
}

// admit registers a connection, and reports whether the server is still the one that the connection was
// made to.
func (s *Server) admit(c *conn, address string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[c] = struct{}{}
	return s.backend == address
}

func (s *Server) forget(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// execute executes a command, on the embedded server one at a time.
func (s *Server) execute(c *conn, x *Exchange, request message) (bson.Raw, error) {
	if s.place.real != nil {
		return s.forward(c, x, request)
	}
	if request.unanswered() {
		return nil, errUnanswered
	}
	s.turn.Lock()
	defer s.turn.Unlock()
	carryOut := s.forward
	if s.options.ReplicaSet {
		carryOut = s.executeOnce
	}
	reply, err := carryOut(c, x, request)
	if err == nil && s.options.Disguised && x.Name == "buildInfo" {
		return disguised(reply)
	}
	return reply, err
}

func (s *Server) forward(c *conn, x *Exchange, request message) (bson.Raw, error) {
	reply, err := c.roundTrip(request)
	if err == nil {
		s.journal.note(x, func(x *Exchange) { x.Executed, x.Reply = true, reply })
	}
	return reply, err
}
