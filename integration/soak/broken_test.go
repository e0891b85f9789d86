//go:build linux

package soak_test

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/multilock/go/multilock/vfs"
)

// variant is a file system that makes the protocol break one of its rules.
type variant struct {
	name string
	what string
	dir  func(vfs.Dir) vfs.Dir
}

// variants are mistakes that a lock on NFS can easily make.
func variants() []variant {
	return []variant{
		{
			"unlink-by-path", "files are removed by path, so possibly those of another lock than the one that is meant",
			func(d vfs.Dir) vfs.Dir { return byPath{d} },
		},
		{
			"cached-attributes", "the signs of life are looked for in the client's cache",
			func(d vfs.Dir) vfs.Dir { return cached{d} },
		},
		{
			"unsent-heartbeat", "the signs of life do not reach the server",
			func(d vfs.Dir) vfs.Dir { return unsent{d} },
		},
	}
}

func variantList() string {
	var names []string
	for _, v := range variants() {
		names = append(names, v.name)
	}
	return strings.Join(names, ", ")
}

// fileSystem is the system's own, or a broken variant of it.
func fileSystem(name string) (vfs.FS, error) {
	if name == "" {
		return vfs.OS{}, nil
	}
	for _, v := range variants() {
		if v.name == name {
			return brokenFS{v.dir}, nil
		}
	}
	return nil, fmt.Errorf("unknown variant %q; there are %s", name, variantList())
}

type brokenFS struct {
	broken func(vfs.Dir) vfs.Dir
}

func (f brokenFS) OpenDir(path string) (vfs.Dir, error) {
	dir, err := vfs.OS{}.OpenDir(path)
	if err != nil {
		return nil, err
	}
	return brokenDir{f.broken(dir), f.broken}, nil
}

// brokenDir breaks the directories below it as well.
type brokenDir struct {
	vfs.Dir
	broken func(vfs.Dir) vfs.Dir
}

func (d brokenDir) OpenDir(name string) (vfs.Dir, error) {
	dir, err := d.Dir.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return brokenDir{d.broken(dir), d.broken}, nil
}

type byPath struct{ vfs.Dir }

func (d byPath) Unlink(name string) error {
	path := filepath.Join(d.Path(), name)
	if err := unix.Unlink(path); err != nil {
		return &fs.PathError{Op: "unlink", Path: path, Err: err}
	}
	return nil
}

type cached struct{ vfs.Dir }

// Stat answers as fstat(2) does: with times that are up to a minute old, by
// default (acdirmax in nfs(5)).
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
		Inode: s.Ino, Links: s.Nlink, UID: s.Uid,
	}, nil
}

type unsent struct{ vfs.Dir }

func (d unsent) Touch() error { return nil }
