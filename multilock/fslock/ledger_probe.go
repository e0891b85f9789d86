package fslock

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/multilock/go/multilock/fslock/internal/groupfiles"
	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// errOccupied says that there is a directory with something in it.
var errOccupied = errors.New("a directory is in the way")

// probe finds out whether the lock's name has a result: nil if it has, ErrNoResult if not.
//
// It tries to make a directory in its place. That it can be made is the server's
// own word that there is none, whatever this client's cache holds; no look at the
// name is. The directory is removed at once; if a crash leaves it, it is in
// nobody's way, and the next probe tells it from a result.
func (l *lease) probe(done *shareddir.Handle) error {
	return l.src.probeWith(done, l.record.Name, l.moveAway)
}

// probeWith asks, and has the directory moved away with what is given.
func (s *Source) probeWith(done *shareddir.Handle, name string, moveAway away) error {
	made, err := s.ask(done, name)
	if err != nil {
		return err
	}
	return s.settle(done, name, made, moveAway)
}

// away moves the directory of a probe away, on NFS.
type away func(done *shareddir.Handle) error

// leave is what who does not hold the lock does with it: it stays, until a holder comes.
func leave(*shareddir.Handle) error { return nil }

// ask tries to make the directory: it is made, or something is there.
func (s *Source) ask(done *shareddir.Handle, name string) (made bool, err error) {
	err = done.Mkdir(name, shareddir.DirMode)
	switch {
	case gone(err):
		s.results.Drop(done)
		return false, groupfiles.ErrAgain
	case is(err, syscall.EEXIST):
		return false, nil
	case err != nil:
		return false, opError("learn the result", name, err)
	}
	return true, nil
}

// settle removes the directory, or finds that it is none.
func (s *Source) settle(done *shareddir.Handle, name string, made bool, moveAway away) error {
	if !s.base.Kind.NFS {
		return s.probed(name, made, done.Rmdir(name))
	}
	var err error
	if !made {
		err = s.mustBeProbe(done, name)
	}
	if err == nil {
		err = moveAway(done)
	}
	return s.probed(name, made, err)
}

// probed is what the removal of the directory tells.
func (s *Source) probed(name string, made bool, removed error) error {
	switch {
	case inDoubt(removed) && s.base.Kind.NFS:
	case made, removed == nil:
		return source.ErrNoResult
	case is(removed, syscall.ENOTDIR):
		return nil
	case gone(removed):
		return groupfiles.ErrAgain
	case notEmpty(removed):
		return errOccupied
	}
	return opError("learn the result", name, removed)
}

// mustBeProbe tells the directory that an earlier probe left from a result, which is ENOTDIR.
// On NFS what this client remembers of the name may be a directory that is gone: the attributes
// of the results' directory tell it what has changed, and a look at the name asks for what it
// finds there.
func (s *Source) mustBeProbe(done vfs.Dir, name string) error {
	if err := s.files.Refresh(done); err != nil {
		return err
	}
	info, err := done.StatName(name)
	switch {
	case err != nil:
		return err
	case !info.Mode.IsDir():
		return syscall.ENOTDIR
	}
	return mustBeEmpty(done, name)
}

func mustBeEmpty(parent vfs.Dir, name string) error {
	dir, err := parent.OpenDir(name)
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // a directory
	empty := true
	err = dir.List(func(string) bool { empty = false; return false })
	if err == nil && !empty {
		return syscall.ENOTEMPTY
	}
	return err
}

// moveAway moves a probe's directory into that of the lock, and removes it there, on NFS. An
// rmdir where it is would be right for as long as the lock is held, but a client sends it again
// until it is answered, and with version 4 it does not say what it is for: come too late, it
// would remove the result that a later holder has committed. The rename has the lock's
// directory as its target, and works only while that exists.
//
// If nobody knows whether it was carried out, it may be later, and would then take away what
// this holder commits: so there is no answer.
func (l *lease) moveAway(done *shareddir.Handle) error {
	renamed := done.Rename(l.record.Name, l.dir, l.forgot())
	if is(renamed, syscall.ENOTDIR, syscall.EEXIST, syscall.ENOTEMPTY) {
		// A result is there that was forgotten, and could not be removed at once.
		_ = removeEntry(l.dir, l.forgot()) // the rename tells
		renamed = done.Rename(l.record.Name, l.dir, l.forgot())
	}
	if inDoubt(renamed) {
		l.setMoved(true)
		return renamed
	}
	if renamed != nil && !gone(renamed) {
		// It stays, and would be in the way of the result. No error number: nothing is known.
		return fmt.Errorf("move an earlier question's directory away: %v", renamed) //nolint:errorlint // as said
	}
	removed := l.dir.Rmdir(l.forgot())
	if removed != nil && !gone(removed) {
		l.setMoved(true)
	}
	return nil
}

// removeEntry removes what may be a file or, of a probe, an empty directory.
func removeEntry(dir vfs.Dir, name string) error {
	err := dir.Unlink(name)
	if is(err, syscall.EISDIR, syscall.EPERM) {
		if removed := dir.Rmdir(name); !is(removed, syscall.ENOTDIR) {
			return removed
		}
	}
	return err
}
