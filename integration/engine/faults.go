// Package engine has what the tests of sources on servers have in common: what befalls a request on its
// way, and what each such source is tried with, beside the conformance. What a server is, and how it is
// struck, is in the package of its lab.
package engine

import (
	"net"
	"sync"
)

// Outcome is what becomes of a request.
type Outcome int

// The outcomes. No proxy knows all of them.
const (
	Done    Outcome = iota
	Dropped         // it never arrives
	Lost            // its answer does not
	Zombie          // it arrives when Land is called, long after it was given up
	Hung            // nobody answers
	Cut             // the connection is cut when half of it has arrived
	Torn            // the connection is cut when half of its answer was sent
	Broken          // it is carried out, and all connections break before the answer
	Denied          // it is carried out, and the answer is that it was canceled
)

// Faults are a proxy's: what becomes of the requests that it sees, and its connections.
type Faults struct {
	mu      sync.Mutex
	fault   func(n int, method string) Outcome
	n       int
	zombies []func()
	conns   map[net.Conn]bool
}

// Inject has requests from now on go wrong, which are numbered from 0. nil ends that.
func (f *Faults) Inject(fault func(n int, method string) Outcome) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault, f.n = fault, 0
}

// Begin counts a request, and says what becomes of it.
func (f *Faults) Begin(method string) Outcome {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fault == nil {
		return Done
	}
	f.n++
	return f.fault(f.n-1, method)
}

// Delay keeps a zombie until Land.
func (f *Faults) Delay(walk func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.zombies = append(f.zombies, walk)
}

// Land has all zombies be carried out.
func (f *Faults) Land() {
	f.mu.Lock()
	zombies := f.zombies
	f.zombies = nil
	f.mu.Unlock()
	for _, walk := range zombies {
		walk()
	}
}

// Keep has a connection be one that Break breaks, until it is dropped, which closes it.
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

// Break breaks all connections.
func (f *Faults) Break() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for conn := range f.conns {
		_ = conn.Close()
	}
	clear(f.conns)
}
