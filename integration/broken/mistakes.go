//go:build linux

package broken

import (
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/multilock/go/multilock/vfs"
)

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
		Inode: s.Ino, Links: s.Nlink, UID: s.Uid,
	}, nil
}

type unsent struct{ vfs.Dir }

func (d unsent) Touch() error { return nil }
