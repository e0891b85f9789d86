package fslock

import (
	"sync"
	"syscall"

	"github.com/multilock/go/multilock/vfs"
)

// shared is a directory that several goroutines use, and that is opened again
// when the one behind its name has been replaced. A descriptor is closed when its
// last user is done with it: closed earlier, its number could come to mean
// another directory in the middle of a call.
type shared struct {
	open func() (vfs.Dir, error)

	mu  sync.Mutex
	cur *handle
}

// handle is one opened directory and the number of its users, guarded by the
// mutex of shared.
type handle struct {
	vfs.Dir
	users   int
	dropped bool
}

// use returns the directory, opened if need be. Every use needs a done.
func (s *shared) use() (*handle, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cur == nil {
		dir, err := s.open()
		if err != nil {
			return nil, err
		}
		s.cur = &handle{Dir: dir}
	}
	s.cur.users++
	return s.cur, nil
}

// present returns the directory that has the name now: the one that was opened
// before may have been removed, and made again by somebody else. It fetches the
// directory's attributes, which makes an NFS client forget the names in it if it
// has changed.
func (s *shared) present() (*handle, error) {
	for range rounds() {
		h, err := s.use()
		if err != nil {
			return nil, err
		}
		info, err := h.Stat()
		if err == nil && info.Links > 0 {
			return h, nil
		}
		if err == nil || gone(err) {
			s.drop(h)
		}
		s.done(h)
		if err != nil && !gone(err) {
			return nil, err
		}
	}
	return nil, syscall.ENOENT
}

func (s *shared) done(h *handle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h.users--
	s.closeIfUnused(h)
}

// drop makes the next use open the directory anew, if h is still the one in use.
func (s *shared) drop(h *handle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cur == h {
		s.cur = nil
	}
	h.dropped = true
	s.closeIfUnused(h)
}

func (s *shared) closeIfUnused(h *handle) {
	if h.dropped && h.users == 0 {
		_ = h.Close() // a directory that was only looked through
	}
}

// close drops whatever is open.
func (s *shared) close() {
	s.mu.Lock()
	cur := s.cur
	s.mu.Unlock()
	if cur != nil {
		s.drop(cur)
	}
}

// keep adds a user to a directory that is in use already.
func (s *shared) keep(h *handle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h.users++
}
