//go:build linux

package stalefs

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// object is a file or directory on the server, and the handle to it. The open descriptor prevents
// reuse of the inode number, like the generation in a real handle.
type object struct {
	fd      int
	ino     uint64
	users   int
	changes uint64 // number of changes to its entries through the server
}

// attributes are an object's attributes in a reply of the server.
type attributes struct {
	fuse.Attr
	change uint64 // differs after each change to a directory
}

// turn is the change attribute of a directory before and after a call.
type turn struct{ before, after uint64 }

// handle returns an open handle, or opens one. The caller holds the lock, or has exclusive access.
// Every handle needs a drop.
func (s *Server) handle(dirfd int, name string) (*object, error) {
	fd, err := unix.Openat(dirfd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return nil, err
	}
	o := s.objects[st.Ino]
	if o == nil {
		o = &object{fd: fd, ino: st.Ino}
		s.objects[st.Ino] = o
	} else {
		unix.Close(fd)
	}
	o.users++
	return o, nil
}

func (s *Server) keep(objects ...*object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range objects {
		o.users++
	}
}

func (s *Server) drop(objects ...*object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range objects {
		if o.users--; o.users == 0 {
			unix.Close(o.fd)
			delete(s.objects, o.ino)
		}
	}
}

// attributes reads an object's attributes. An object without a name has been removed by a client
// that did not know of this handle.
func (s *Server) attributes(o *object) (attributes, error) {
	var st syscall.Stat_t
	if err := syscall.Fstat(o.fd, &st); err != nil {
		return attributes{}, err
	}
	if st.Nlink == 0 {
		return attributes{}, syscall.ESTALE
	}
	var a attributes
	a.FromStat(&st)
	a.change = s.change(o, st.Ctim.Nano())
	return a, nil
}

// change derives the change attribute from the time of the last change. On kernels with coarse
// timestamps only the counter distinguishes two changes.
func (s *Server) change(o *object, ctime int64) uint64 {
	if s.Tick > 0 {
		return uint64(ctime / int64(s.Tick)) //nolint:gosec // after 1970
	}
	return uint64(ctime) + o.changes //nolint:gosec // after 1970
}

// changing modifies the entries of a directory, which must still exist.
func (s *Server) changing(dir *object, f func() error) (turn, error) {
	before, err := s.attributes(dir)
	if err != nil {
		return turn{}, err
	}
	if err := f(); err != nil {
		return turn{}, err
	}
	dir.changes++
	after, err := s.attributes(dir)
	return turn{before.change, after.change}, err
}
