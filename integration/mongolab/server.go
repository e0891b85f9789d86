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

	// turn is held while the embedded server carries a command out.
	turn        sync.Mutex
	repetitions *repetitions // guarded by turn

	changing sync.Mutex // held while the server is started, stopped or closed
	embedded *embedded  // guarded by changing; nil while stopped, and with a real server

	mu      sync.Mutex
	backend string // where the server behind the proxy is; empty while stopped
	conns   map[*conn]struct{}

	running sync.WaitGroup
}

// Open starts a server. Close ends it. Tests use the function Start.
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

// Close ends the server and all connections. With a real server it drops Database.
func (s *Server) Close() error {
	s.Stop()
	err := s.listener.Close()
	s.running.Wait()
	if s.place.real != nil {
		return errors.Join(err, dropDatabase(s.place.real, s.database))
	}
	return err
}

// URI is how clients connect. It stays the same when the server is restarted.
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

// Database is a name that no other Server uses. A real server drops it in the end.
func (s *Server) Database() string { return s.database }

// Real says that a real server is behind the proxy, not the embedded one.
func (s *Server) Real() bool { return s.place.real != nil }

// Inject replaces the Injector, from the next command on, which gets the number 0.
// That way a test sets up its scene without faults. nil is no faults.
func (s *Server) Inject(inject Injector) { s.journal.setInjector(inject) }

// Counts are the commands since Open, upkeep left out.
func (s *Server) Counts() Counts { return s.journal.counted() }

// Log has the last few thousand commands in the order in which they came, upkeep
// left out.
func (s *Server) Log() []Exchange { return s.journal.exchanges() }

// CutConnections ends all connections, as a network does. A command that is held up
// is not carried out; one that the server is working on is.
func (s *Server) CutConnections() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.cut()
	}
}

// accept takes clients in, until the listener is closed.
func (s *Server) accept() {
	for {
		client, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.running.Go(func() { s.serve(client) })
	}
}

// serve is the life of a connection. While the server is stopped it is closed at
// once; the port stays taken, so that nobody else's server gets our clients.
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

// admit makes a connection known, and says whether the server is still the one to
// which it leads.
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

// execute has the server carry a command out: the embedded one, one at a time.
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
