//go:build linux || darwin || freebsd

package vfs

import (
	"io/fs"
	"sync"

	"golang.org/x/sys/unix"
)

// pinned is a descriptor that is closed after its last use. A call may hang while a file server is down,
// and continue after its caller has timed out and closed everything: by then the number could belong
// to another directory.
type pinned struct {
	fd int

	mu     sync.Mutex
	users  int
	closed bool
}

// Pin implements Dir.
func (p *pinned) Pin() (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return -1, fs.ErrClosed
	}
	p.users++
	return p.fd, nil
}

// Unpin implements Dir.
func (p *pinned) Unpin() {
	p.mu.Lock()
	p.users--
	last := p.closed && p.users == 0
	p.mu.Unlock()
	if last {
		_ = unix.Close(p.fd) // closing a directory cannot lose data
	}
}

func (p *pinned) close() error {
	p.mu.Lock()
	used, again := p.users > 0, p.closed
	p.closed = true
	p.mu.Unlock()
	switch {
	case again:
		return fs.ErrClosed
	case used:
		return nil
	}
	return unix.Close(p.fd)
}
