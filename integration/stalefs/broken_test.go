//go:build linux

package stalefs_test

import (
	"io/fs"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/vfs"
)

// A test that cannot fail proves nothing. With a protocol that breaks one of its
// rules the same run has to find two holders at once.
func TestBrokenVariantsAreCaught(t *testing.T) {
	t.Parallel()
	const limit = 2 * time.Minute // most are caught within seconds
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			s := newStress(t, brokenFS{v.dir}, 0)
			s.calm = v.calm
			start := time.Now()
			s.run(limit)
			caught := s.result.err()
			require.Error(t, caught, "%s: nobody noticed", v.what)
			require.Error(t, locktest.Check(s.result.events(t)), "%s: the history says nothing of it", v.what)
			t.Logf("after %s: %v", time.Since(start).Round(time.Millisecond), caught)
		})
	}
}

// variant is a mistake that a lock on NFS can easily make.
type variant struct {
	name string
	what string
	calm time.Duration // the longest time between two cuts of one host
	dir  func(vfs.Dir) vfs.Dir
}

func variants() []variant {
	return []variant{
		{
			"unlink by path", "files are removed by path, so possibly those of another lock than the one that is meant", 2 * stressTTL,
			func(d vfs.Dir) vfs.Dir { return byPath{d} },
		},
		{
			"remembered attributes", "the signs of life are looked for in the client's cache", 20 * stressTTL,
			func(d vfs.Dir) vfs.Dir { return remembered{d} },
		},
		{
			"unsent heartbeat", "the signs of life do not reach the server", 20 * stressTTL,
			func(d vfs.Dir) vfs.Dir { return unsent{d} },
		},
	}
}

// brokenFS makes all its directories break a rule.
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

type remembered struct{ vfs.Dir }

// Stat answers as fstat(2) does, without AT_STATX_FORCE_SYNC.
func (d remembered) Stat() (vfs.Info, error) {
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
