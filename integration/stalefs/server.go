//go:build linux

package stalefs

import (
	"fmt"
	"sync"
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
