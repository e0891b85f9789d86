//go:build linux

package stalefs

import (
	"fmt"
	"os"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// entry is an object that was found or created in a directory.
type entry struct {
	object *object
	attributes
	dir turn
}

// getattr executes GETATTR.
func (s *Server) getattr(o *object) (attributes, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.attributes(o)
}

// lookup executes LOOKUP. It returns an entry, whose object must be dropped, or an error together
// with the directory's change attribute.
func (s *Server) lookup(dir *object, name string) (entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	parent, err := s.attributes(dir)
	if err != nil {
		return entry{}, err
	}
	e, err := s.find(dir, name)
	e.dir = turn{parent.change, parent.change}
	return e, err
}

func (s *Server) find(dir *object, name string) (entry, error) {
	o, err := s.handle(dir.fd, name)
	if err != nil {
		return entry{}, err
	}
	a, err := s.attributes(o)
	return entry{object: o, attributes: a}, err
}

// mkdir creates a directory, whose object must be dropped.
func (s *Server) mkdir(dir *object, name string, mode uint32) (entry, error) {
	return s.making(dir, name, func() error { return unix.Mkdirat(dir.fd, name, mode) })
}

// create creates a file, or opens an existing one if that is allowed.
func (s *Server) create(dir *object, name string, flags, mode uint32) (entry, error) {
	return s.making(dir, name, func() error {
		how := unix.O_CREAT | unix.O_WRONLY | unix.O_NOFOLLOW | unix.O_CLOEXEC | int(flags&unix.O_EXCL)
		fd, err := unix.Openat(dir.fd, name, how, mode)
		if err != nil {
			return err
		}
		return unix.Close(fd)
	})
}

func (s *Server) making(dir *object, name string, f func() error) (entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.changing(dir, f)
	if err != nil {
		return entry{}, err
	}
	e, err := s.find(dir, name)
	e.dir = t
	return e, err
}

// remove executes REMOVE, or RMDIR with AT_REMOVEDIR.
func (s *Server) remove(dir *object, name string, flags int) (turn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changing(dir, func() error { return unix.Unlinkat(dir.fd, name, flags) })
}

// rename executes RENAME, and returns its effect on each of the two directories.
func (s *Server) rename(from *object, oldname string, to *object, newname string) (source, target turn, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	source, err = s.changing(from, func() error {
		var err error
		target, err = s.changing(to, func() error { return unix.Renameat(from.fd, oldname, to.fd, newname) })
		return err
	})
	if from == to {
		target = source
	}
	return source, target, err
}

// setattr executes SETATTR. A time without a value is set to the server's current time.
func (s *Server) setattr(o *object, in *fuse.SetAttrIn) (attributes, turn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.changing(o, func() error { return setattr(o.path(), in) })
	if err != nil {
		return attributes{}, turn{}, err
	}
	a, err := s.attributes(o)
	return a, t, err
}

// path refers to an object by its handle.
func (o *object) path() string { return fmt.Sprintf("/proc/self/fd/%d", o.fd) }

func setattr(path string, in *fuse.SetAttrIn) error {
	if mode, set := in.GetMode(); set {
		if err := unix.Chmod(path, mode); err != nil {
			return err
		}
	}
	if size, set := in.GetSize(); set {
		if err := unix.Truncate(path, int64(size)); err != nil { //nolint:gosec // sizes fit
			return err
		}
	}
	if in.Valid&(fuse.FATTR_ATIME|fuse.FATTR_MTIME) == 0 {
		return nil
	}
	times := []unix.Timespec{
		timestamp(in, fuse.FATTR_ATIME, fuse.FATTR_ATIME_NOW, in.Atime, in.Atimensec),
		timestamp(in, fuse.FATTR_MTIME, fuse.FATTR_MTIME_NOW, in.Mtime, in.Mtimensec),
	}
	return unix.UtimesNanoAt(unix.AT_FDCWD, path, times, 0)
}

func timestamp(in *fuse.SetAttrIn, set, now uint32, sec uint64, nsec uint32) unix.Timespec {
	switch {
	case in.Valid&now != 0:
		return unix.Timespec{Nsec: unix.UTIME_NOW}
	case in.Valid&set != 0:
		return unix.Timespec{Sec: int64(sec), Nsec: int64(nsec)} //nolint:gosec // times fit
	}
	return unix.Timespec{Nsec: unix.UTIME_OMIT}
}

// read executes READ.
func (s *Server) read(o *object, buf []byte, off int64) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.transfer(o, unix.O_RDONLY, func(fd int) (int, error) { return unix.Pread(fd, buf, off) })
}

// write executes WRITE.
func (s *Server) write(o *object, data []byte, off int64) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.transfer(o, unix.O_WRONLY, func(fd int) (int, error) { return unix.Pwrite(fd, data, off) })
}

func (s *Server) transfer(o *object, flags int, f func(fd int) (int, error)) (int, error) {
	if _, err := s.attributes(o); err != nil {
		return 0, err
	}
	fd, err := unix.Open(o.path(), flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	return f(fd)
}

// list executes READDIR, in one reply.
func (s *Server) list(o *object) ([]fuse.DirEntry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.attributes(o); err != nil {
		return nil, err
	}
	found, err := os.ReadDir(o.path())
	if err != nil {
		return nil, err
	}
	entries := make([]fuse.DirEntry, 0, len(found))
	for _, e := range found {
		entries = append(entries, fuse.DirEntry{Name: e.Name(), Mode: direntMode(e)})
	}
	return entries, nil
}

func direntMode(e os.DirEntry) uint32 {
	if e.IsDir() {
		return unix.S_IFDIR
	}
	return unix.S_IFREG
}
