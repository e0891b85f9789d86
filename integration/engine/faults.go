// Package engine holds what the tests of sources on servers share: the faults of a request on its way,
// and the tests that each such source runs beside the conformance tests. How a server is started and
// broken is in the package of its lab.
package engine

import (
	"net"
	"sync"
)

// Outcome is what happens to a request.
type Outcome int

// The outcomes. No proxy implements all of them.
const (
	Done     Outcome = iota
	Dropped          // the request never arrives
	Lost             // the reply never arrives
	Zombie           // the request arrives when Land is called, long after the client gave up
	Hung             // there is no reply
	Cut              // the connection is cut after half of the request
	Torn             // the connection is cut after half of the reply
	Broken           // the request is executed, and all connections break before the reply
	Repeated         // the request is executed twice, and the second reply arrives
	Denied           // the request is executed, and the reply says that it was canceled
)

// Faults holds the faults that a proxy injects, and the connections that it can break.
type Faults struct {
	mu      sync.Mutex
	fault   func(n int, method string) Outcome
	n       int
	zombies []func()
	conns   map[net.Conn]bool
}

// Inject sets the fault of each request from now on. Requests are numbered from 0. nil ends the faults.
func (f *Faults) Inject(fault func(n int, method string) Outcome) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault, f.n = fault, 0
}

// Begin counts a request and returns its outcome.
func (f *Faults) Begin(method string) Outcome {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fault == nil {
		return Done
	}
	f.n++
	return f.fault(f.n-1, method)
}

// Delay keeps a zombie request until Land.
func (f *Faults) Delay(walk func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.zombies = append(f.zombies, walk)
}

// Land executes all zombie requests.
func (f *Faults) Land() {
	f.mu.Lock()
	zombies := f.zombies
	f.zombies = nil
	f.mu.Unlock()
	for _, walk := range zombies {
		walk()
	}
}

// Keep registers a connection for Break. drop unregisters and closes it.
func (f *Faults) Keep(conn net.Conn) (drop func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.conns == nil {
		f.conns = map[net.Conn]bool{}
	}
	f.conns[conn] = true
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.conns, conn)
		_ = conn.Close()
	}
}

// Kept returns a listener that registers its connections for Break.
func (f *Faults) Kept(l net.Listener) net.Listener { return kept{l, f} }

type kept struct {
	net.Listener
	faults *Faults
}

func (k kept) Accept() (net.Conn, error) {
	conn, err := k.Listener.Accept()
	if err == nil {
		k.faults.Keep(conn)
	}
	return conn, err
}

// Break closes all connections.
func (f *Faults) Break() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for conn := range f.conns {
		_ = conn.Close()
	}
	clear(f.conns)
}
