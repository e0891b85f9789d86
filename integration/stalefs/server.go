//go:build linux

package stalefs

import (
	"fmt"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Server has the directory that its mounts share. Everything that a mount asks
// for is done at one moment, under one lock.
type Server struct {
	// Tick is how coarse the change attribute of a directory is: two changes within
	// a tick look like one. 0 means that every change shows. To be set before the
	// first mount.
	Tick time.Duration

	mu      sync.Mutex
	objects map[uint64]*object
	root    *object

	up gate

	zombies sync.Mutex
	undead  map[int]func()
	buried  int
}

// Serve makes dir the directory that mounts show. Whatever is done in it directly
// is seen by the mounts as the work of another client.
func Serve(dir string) (*Server, error) {
	s := &Server{objects: map[uint64]*object{}, undead: map[int]func(){}}
	root, err := s.handle(unix.AT_FDCWD, dir)
	if err != nil {
		return nil, fmt.Errorf("serve %s: %w", dir, err)
	}
	s.root = root
	return s, nil
}

// Stop makes the server answer nothing until Start.
func (s *Server) Stop() { s.up.close() }

// Start ends a Stop.
func (s *Server) Start() { s.up.open() }

// Close carries all zombies out and gives the directory up. What mounts still use
// they keep.
func (s *Server) Close() {
	s.Land()
	s.drop(s.root)
}

// Land carries out all calls that were given up and not yet carried out.
func (s *Server) Land() {
	s.zombies.Lock()
	waiting := s.undead
	s.undead = map[int]func(){}
	s.zombies.Unlock()
	for _, execute := range waiting {
		execute()
	}
}

// later carries a call out after a time, or when Land is called.
func (s *Server) later(after time.Duration, execute func()) {
	s.zombies.Lock()
	defer s.zombies.Unlock()
	n := s.buried
	s.buried++
	s.undead[n] = execute
	if after > 0 {
		time.AfterFunc(after, func() { s.rise(n) })
	}
}

func (s *Server) rise(n int) {
	s.zombies.Lock()
	execute := s.undead[n]
	delete(s.undead, n)
	s.zombies.Unlock()
	if execute != nil {
		execute()
	}
}

// gate is a path that can be closed: whoever comes then waits.
type gate struct {
	mu   sync.Mutex
	shut chan struct{} // closed when the gate opens; nil while it is open
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut == nil {
		g.shut = make(chan struct{})
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut != nil {
		close(g.shut)
		g.shut = nil
	}
}

func (g *gate) state() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shut
}

// pass waits until the gate is open, or for the limit, and says which. No limit
// is 0.
func (g *gate) pass(limit time.Duration) bool {
	var late <-chan time.Time
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		late = timer.C
	}
	for {
		shut := g.state()
		if shut == nil {
			return true
		}
		select {
		case <-shut:
		case <-late:
			return false
		}
	}
}

// reach waits until the server can be reached, or gives up on a soft mount.
func (c *client) reach() error {
	if c.path.pass(c.opt.Soft) && c.server.up.pass(c.opt.Soft) {
		return nil
	}
	return syscall.ETIMEDOUT
}

// send has the server carry a call out that changes something, unless a fault
// strikes. The objects are those that the call needs. It may be executed twice,
// and after send has returned.
func (c *client) send(kind Kind, name string, execute func() error, objects ...*object) error {
	if err := c.reach(); err != nil {
		return err
	}
	f := c.draw(kind, name)
	time.Sleep(f.Before)
	defer time.Sleep(f.After)
	switch f.Outcome {
	case Retransmitted:
		_ = execute()
		return execute()
	case Lost:
		_ = execute()
		return f.Errno
	case Dropped:
		return f.Errno
	case Zombie:
		c.server.keep(objects...)
		c.server.later(f.Later, func() {
			_ = execute()
			c.server.drop(objects...)
		})
		return f.Errno
	}
	return execute()
}

// draw numbers a call and decides what happens to it.
func (c *client) draw(kind Kind, name string) Fault {
	c.mu.Lock()
	call, inject := Call{N: c.calls, Kind: kind, Name: name}, c.inject
	c.calls++
	c.mu.Unlock()
	if inject == nil {
		return Fault{}
	}
	return inject(call)
}
