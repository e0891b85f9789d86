//go:build linux

// Package broken provides file systems that break one rule of the filesystem lock's protocol each. A
// test that cannot fail proves nothing: a stress run on one of these file systems must find two holders
// at once. For tests only.
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

// Variant is an easy mistake in a lock on NFS.
type Variant struct {
	Name string // on the command line
	What string // the mistake, in words
	dir  Dir
}

// Names of the variants.
const (
	UnlinkByPath     = "unlink-by-path"
	CachedAttributes = "cached-attributes"
	UnsentHeartbeat  = "unsent-heartbeat"
)

// Variants returns all variants.
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

// Find returns the variant with this name.
func Find(name string) (Variant, error) {
	for _, v := range Variants() {
		if v.Name == name {
			return v, nil
		}
	}
	return Variant{}, fmt.Errorf("unknown variant %q", name)
}

// FS returns the system's file system with the mistake built in.
func (v Variant) FS() vfs.FS { return FS{v.dir} }

// Dir wraps a directory so that it breaks a rule.
type Dir func(vfs.Dir) vfs.Dir

// FS is the system's file system, with every directory wrapped.
type FS struct{ Broken Dir }

// OpenDir implements vfs.FS.
func (f FS) OpenDir(path string) (vfs.Dir, error) {
	return f.open(vfs.OS{}.OpenDir(path))
}

func (f FS) open(d vfs.Dir, err error) (vfs.Dir, error) {
	if err != nil {
		return nil, err
	}
	return dir{f.Broken(d), f}, nil
}

// dir also wraps the directories below it.
type dir struct {
	vfs.Dir
	fs FS
}

func (d dir) OpenDir(name string) (vfs.Dir, error) { return d.fs.open(d.Dir.OpenDir(name)) }

func (d dir) Enter(name string) (vfs.Dir, error) { return d.fs.open(d.Dir.Enter(name)) }

// byPath sometimes pauses before it removes a lock, as any process may. Removing by path is wrong only
// if the lock is replaced during the pause.
type byPath struct{ vfs.Dir }

const (
	oneOf      = 8 // one removal in this many is late
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

// Rename uses the path of the source and the descriptor of the target directory.
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

// Stat calls fstat(2), without AT_STATX_FORCE_SYNC. By default its times are up to a minute old
// (acdirmax in nfs(5)).
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
