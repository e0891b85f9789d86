package simnfs

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/multilock/go/multilock/vfs"
)

// Server has the directory that its clients share. The server and its clients must not be used
// concurrently.
type Server struct {
	// Clock is the server's clock. It may be set.
	Clock func() time.Time
	// Tick is the resolution of the server's timestamps; with 0 they are exact, and change attributes
	// are counters.
	Tick time.Duration
	// ReplacesNothing makes a rename of a directory to an existing one fail, even if that is empty.
	ReplacesNothing bool
	// Forgets makes the server keep the state that Forget returns to.
	Forgets bool

	root   *object
	mounts uint64
	uid    uint32
	gid    uint32
	ghosts Sum       // the history of removed objects
	pins   []*object // by the pinned numbers of directories
	saved  [2]saved
}

// object is a file or directory, and the handle to it.
type object struct {
	server   *Server
	id       uint64
	mode     fs.FileMode
	entries  map[string]*object // of a directory
	content  []byte
	modified time.Time
	changed  time.Time
	changes  uint64
	most     uint64 // its maximum: a server that forgets changes reuses no number, because it adds the time
	links    uint64
	held     int // by version 4 clients that have it open
	remover  *Client
	made     string // the path at which it was created
}

// Serve returns a server with an empty directory.
func Serve(clock func() time.Time) *Server {
	s := &Server{Clock: clock, uid: uint32(os.Geteuid()), gid: uint32(os.Getegid())} //nolint:gosec // ids fit
	s.root = s.create(1, fs.ModeDir|0o755)
	return s
}

func (s *Server) create(id uint64, mode fs.FileMode) *object {
	o := &object{server: s, id: id, mode: mode, links: 1}
	if mode.IsDir() {
		o.entries, o.links = map[string]*object{}, 2
	}
	s.touch(o)
	return o
}

func (s *Server) now() time.Time {
	now := s.Clock()
	if s.Tick > 0 {
		now = now.Truncate(s.Tick)
	}
	return now
}

// touch sets both times of an object, after a change of its entries or its content.
func (s *Server) touch(o *object) {
	o.modified = s.now()
	s.note(o)
}

// note sets the change time of an object.
func (s *Server) note(o *object) {
	o.changed = s.now()
	o.most++
	o.changes = o.most
	if o.links == 0 {
		ghost := Sum(o.id)
		ghost.AddTime(o.changed)
		ghost.Add(o.changes)
		s.ghosts += ghost
	}
}

// change returns the change attribute of an object.
func (s *Server) change(o *object) uint64 {
	if s.Tick > 0 {
		return uint64(o.changed.UnixNano()) //nolint:gosec // after 1970
	}
	return o.changes
}

func (s *Server) remove(o *object, by *Client) {
	o.remover = by
	if o.links--; o.mode.IsDir() {
		o.links = 0
	}
	s.note(o)
}

func (s *Server) rename(from *object, oldname string, to *object, newname string, by *Client) error {
	moved, there := from.entries[oldname], to.entries[newname]
	switch {
	case moved == nil:
		return syscall.ENOENT
	case moved == there:
		return nil
	case moved.has(to):
		return syscall.EINVAL
	case there == nil:
	case there.has(from):
		return syscall.ENOTEMPTY
	case moved.mode.IsDir() && !there.mode.IsDir():
		return syscall.ENOTDIR
	case !moved.mode.IsDir() && there.mode.IsDir():
		return syscall.EISDIR
	case len(there.entries) > 0:
		return syscall.ENOTEMPTY
	case s.ReplacesNothing && there.mode.IsDir():
		return syscall.EEXIST
	}
	if there != nil {
		s.remove(there, by)
	}
	delete(from.entries, oldname)
	to.entries[newname] = moved
	s.touch(from)
	if to != from {
		s.touch(to)
	}
	s.note(moved)
	return nil
}

// has reports whether at is this object, or is inside of it.
func (o *object) has(at *object) bool {
	for _, entry := range o.entries {
		if entry.has(at) {
			return true
		}
	}
	return o == at
}

// device is a number like a disk's, so that it matches no mount of this machine.
const device = 8<<8 | 1

func (o *object) info() vfs.Info {
	return vfs.Info{
		Mode: o.mode, Size: int64(len(o.content)), ModTime: o.modified, ChangeTime: o.changed,
		Device: device, Inode: o.id, Links: o.links,
		UID: o.server.uid, GID: o.server.gid,
	}
}

// Names returns the paths of all objects, for checks. It is not a request.
func (s *Server) Names() []string { return s.root.names("") }

// Content returns the content of a file, nil if it does not exist, for checks. It is not a request.
func (s *Server) Content(path string) []byte {
	at := s.root
	for name := range strings.SplitSeq(path, "/") {
		if at = at.entries[name]; at == nil {
			return nil
		}
	}
	return at.content
}

func (o *object) names(above string) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(o.entries)) {
		all = append(all, above+name)
		all = append(all, o.entries[name].names(above+name+"/")...)
	}
	return all
}

func (o *object) handle() vfs.Handle { return vfs.Handle(fmt.Sprint(o.id)) }
