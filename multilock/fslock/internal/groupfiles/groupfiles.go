// Package groupfiles opens the directories that a lock group has below .multilock.
package groupfiles

import (
	"errors"
	"io"
	"syscall"

	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/vfs"
)

// Root is the directory in .multilock that has one directory for each group.
const Root = "groups"

// TrashPrefix begins the names of staged entries that are about to be removed.
const TrashPrefix = ".trash-"

// Files opens the files of a group in a base directory.
type Files struct {
	Base  *shareddir.Base
	Group string
}

// Make opens BASE/.multilock/groups/GROUP/name, made if absent.
func (g Files) Make(name string, open shareddir.Opener) (vfs.Dir, error) {
	group, err := g.MakeRoot(open)
	if err != nil {
		return nil, err
	}
	defer group.Close() //nolint:errcheck // a directory
	return shareddir.OpenDir(group, name, open)
}

// MakeRoot opens BASE/.multilock/groups/GROUP, made if absent.
func (g Files) MakeRoot(open shareddir.Opener) (vfs.Dir, error) {
	groups, err := g.Base.Below(Root, open)
	if err != nil {
		return nil, err
	}
	defer groups.Close() //nolint:errcheck // a directory
	return shareddir.OpenDir(groups, g.Group, open)
}

// Find opens one of the group's directories, or without a name their parent, if it exists; vfs.Gone(err)
// otherwise.
func (g Files) Find(name ...string) (vfs.Dir, error) {
	return g.FindWith(vfs.Dir.OpenDir, append([]string{Root, g.Group}, name...)...)
}

// FindWith opens a directory of .multilock by its path, if it exists.
func (g Files) FindWith(open shareddir.Opener, path ...string) (vfs.Dir, error) {
	dir, err := g.FindIn(g.Base, shareddir.PrivateDir, open)
	for _, element := range path {
		if err != nil {
			return nil, err
		}
		parent := dir
		dir, err = g.FindIn(parent, element, open)
		_ = parent.Close()
	}
	return dir, err
}

// FindIn opens a directory of parent, if it exists. An NFS client may have cached that it does not:
// fetching the parent's attributes corrects that.
func (g Files) FindIn(parent vfs.Dir, name string, open shareddir.Opener) (vfs.Dir, error) {
	dir, err := open(parent, name)
	if g.Base.Kind.Local || !vfs.Is(err, syscall.ENOENT) {
		return dir, err
	}
	return shareddir.Afresh(parent, name)
}

// Refresh makes an NFS client drop its cached names of a directory that has changed.
func (g Files) Refresh(dir vfs.Dir) error {
	if g.Base.Kind.Local {
		return nil
	}
	_, err := dir.Stat()
	return err
}

// ErrAgain means that a step met a concurrent change, and should be repeated.
var ErrAgain = errors.New("once more")

// InRounds repeats a step that returns ErrAgain.
func InRounds(op, name string, step func() error) error {
	for range shareddir.Rounds() {
		if err := step(); !errors.Is(err, ErrAgain) {
			return err
		}
	}
	return shareddir.OpError(op, name, errors.New("the group's files do not hold still: others change them all the time"))
}

// OpenIn opens a file in a directory. It retries once if the directory was removed or replaced since it was
// opened.
func OpenIn(in *shareddir.Dir, open func(vfs.Dir) (vfs.File, error)) (dir *shareddir.Handle, f vfs.File, err error) {
	for range 2 {
		if dir, err = in.Use(); err != nil {
			return nil, nil, err
		}
		if f, err = open(dir); err == nil {
			return dir, f, nil
		}
		if vfs.Gone(err) {
			in.Drop(dir)
		}
		in.Done(dir)
		if !vfs.Gone(err) {
			break
		}
	}
	return nil, nil, err
}

// Read reads a file, up to one byte more than most.
func Read(dir vfs.Dir, name string, most int) ([]byte, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read from
	return io.ReadAll(io.LimitReader(f, int64(most)+1))
}

// IgnoreGone drops the error of an entry that no longer exists, where that is the aim.
func IgnoreGone(err error) error {
	if vfs.Gone(err) {
		return nil
	}
	return err
}
