//go:build linux

package broken

import (
	"io/fs"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/multilock/go/multilock/vfs"
)

type byPath struct{ vfs.Dir }

func (d byPath) Unlink(name string) error {
	path := filepath.Join(d.Path(), name)
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
		Inode: s.Ino, Links: s.Nlink, UID: s.Uid,
	}, nil
}

type unsent struct{ vfs.Dir }

func (d unsent) Touch() error { return nil }
