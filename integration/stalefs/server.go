//go:build linux

package stalefs

import (
	"fmt"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Server serves a directory to its mounts. It executes each call atomically, under one lock.
type Server struct {
	// Tick is the granularity of a directory's change attribute: two changes within a tick look
	// like one. With 0 every change is visible. Set it before the first mount.
	Tick time.Duration

	mu      sync.Mutex
	objects map[uint64]*object
	root    *object

	up gate

	zombies sync.Mutex
	undead  map[int]func()
	buried  int
}

// Serve serves dir to mounts. To them, direct changes in dir look like those of another client.
func Serve(dir string) (*Server, error) {
	s := &Server{objects: map[uint64]*object{}, undead: map[int]func(){}}
	root, err := s.handle(unix.AT_FDCWD, dir)
	if err != nil {
		return nil, fmt.Errorf("serve %s: %w", dir, err)
	}
	s.root = root
	return s, nil
}

// Stop makes the server unresponsive until Start.
func (s *Server) Stop() { s.up.close() }

// Start ends a Stop.
func (s *Server) Start() { s.up.open() }

// Close executes all zombies and releases the directory. Mounts keep what they still use.
func (s *Server) Close() {
	s.Land()
	s.drop(s.root)
}

// Land executes all calls that were given up and have not been executed yet.
func (s *Server) Land() {
	s.zombies.Lock()
	waiting := s.undead
	s.undead = map[int]func(){}
	s.zombies.Unlock()
	for _, execute := range waiting {
		execute()
	}
}

// later executes a call after a delay, or when Land is called.
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

// gate is a path that can be closed: callers then wait.
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

// pass waits until the gate is open, and reports false if that takes longer than the limit. 0 is no
// limit.
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

// send makes the server execute a modifying call, subject to faults. The objects are those that the
// call needs. The call may be executed twice, and after send has returned.
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
