//go:build linux

// Package broken has file systems that make the protocol of the lock on a filesystem
// break one of its rules. A test that cannot fail proves nothing: a stress run over one
// of them has to find two holders at once. It is for tests only.
package broken

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/multilock/go/multilock/vfs"
)

// Variant is a mistake that a lock on NFS can easily make.
type Variant struct {
	Name string // as on a command line
	What string // the mistake, in words
	dir  Dir
}

// The variants' names.
const (
	UnlinkByPath     = "unlink-by-path"
	CachedAttributes = "cached-attributes"
	UnsentHeartbeat  = "unsent-heartbeat"
)

// Variants are all of them.
func Variants() []Variant {
	return []Variant{
		{
			UnlinkByPath, "files are removed by path, so possibly those of another lock than the one that is meant",
			func(d vfs.Dir) vfs.Dir { return byPath{d} },
		},
		{
			CachedAttributes, "the heartbeats are looked for in the client's cache",
			func(d vfs.Dir) vfs.Dir { return cached{d} },
		},
		{
			UnsentHeartbeat, "the heartbeats do not reach the server",
			func(d vfs.Dir) vfs.Dir { return unsent{d} },
		},
	}
}

// Find returns the variant of that name.
func Find(name string) (Variant, error) {
	for _, v := range Variants() {
		if v.Name == name {
			return v, nil
		}
	}
	return Variant{}, fmt.Errorf("unknown variant %q", name)
}

// FS is the system's own file system with the mistake in it.
func (v Variant) FS() vfs.FS { return FS{v.dir} }

// Dir makes a directory break a rule.
type Dir func(vfs.Dir) vfs.Dir

// FS is the system's own file system, all of whose directories break a rule.
type FS struct{ Broken Dir }

// OpenDir opens a directory by its path.
func (f FS) OpenDir(path string) (vfs.Dir, error) {
	return f.open(vfs.OS{}.OpenDir(path))
}

func (f FS) open(d vfs.Dir, err error) (vfs.Dir, error) {
	if err != nil {
		return nil, err
	}
	return dir{f.Broken(d), f}, nil
}

// dir breaks the directories below it as well.
type dir struct {
	vfs.Dir
	fs FS
}

func (d dir) OpenDir(name string) (vfs.Dir, error) { return d.fs.open(d.Dir.OpenDir(name)) }

func (d dir) Enter(name string) (vfs.Dir, error) { return d.fs.open(d.Dir.Enter(name)) }

// byPath stands still now and then before it removes a lock, as any process may: that is
// when it matters which one it removes.
type byPath struct{ vfs.Dir }

const (
	oneOf      = 8 // removals is one that comes late
	latestStop = 8 * time.Second
)

func standStill(name string) {
	if strings.HasSuffix(name, ".locked") && rand.N(oneOf) == 0 {
		time.Sleep(rand.N(latestStop))
	}
}

func (d byPath) Unlink(name string) error {
	path := filepath.Join(d.Path(), name)
	standStill(name)
	if err := unix.Unlink(path); err != nil {
		return &fs.PathError{Op: "unlink", Path: path, Err: err}
	}
	return nil
}

// Rename goes by the path of what is moved, and through the descriptor of where to.
func (d byPath) Rename(oldname string, to vfs.Dir, newname string) error {
	fd, err := to.Pin()
	if err != nil {
		return err
	}
	defer to.Unpin()
	path := filepath.Join(d.Path(), oldname)
	standStill(oldname)
	if err := unix.Renameat(unix.AT_FDCWD, path, fd, newname); err != nil {
		return &fs.PathError{Op: "rename", Path: path, Err: err}
	}
	return nil
}

type cached struct{ vfs.Dir }

// Stat answers as fstat(2) does, without AT_STATX_FORCE_SYNC: with times that are up
// to a minute old, by default (acdirmax in nfs(5)).
func (d cached) Stat() (vfs.Info, error) {
	fd, err := d.Pin()
	if err != nil {
		return vfs.Info{}, err
	}
	defer d.Unpin()
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil {
		return vfs.Info{}, &fs.PathError{Op: "stat", Path: d.Path(), Err: err}
	}
	return vfs.Info{
		Mode: fs.ModeDir, ModTime: time.Unix(s.Mtim.Unix()), ChangeTime: time.Unix(s.Ctim.Unix()),
		Inode: s.Ino, Links: s.Nlink, UID: s.Uid, GID: s.Gid,
	}, nil
}

type unsent struct{ vfs.Dir }

func (d unsent) Touch() error { return nil }
