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

// errOccupied means that a non-empty directory is where the result belongs.
var errOccupied = errors.New("a directory is in the way")

// probe finds out whether the lock's name has a result: nil if it has, ErrNoResult if not.
//
// It tries to make a directory where the result would be. If mkdir succeeds, the server itself has
// confirmed that there is no result, whatever this client's cache contains; a lookup of the name would not
// prove that. The directory is removed at once. If a crash leaves it, it blocks nothing, and the next probe
// can distinguish it from a result.
func (l *lease) probe(done *shareddir.Handle) error {
	return l.src.probeWith(done, l.record.Name, l.moveAway)
}

// probeWith probes for a result, and removes the directory with moveAway.
func (s *Source) probeWith(done *shareddir.Handle, name string, moveAway away) error {
	made, err := s.ask(done, name)
	if err != nil {
		return err
	}
	return s.settle(done, name, made, moveAway)
}

// away moves the directory of a probe away, on NFS.
type away func(done *shareddir.Handle) error

// leave is for a caller that does not hold the lock: the directory stays, until a holder probes.
func leave(*shareddir.Handle) error { return nil }

// ask tries to make the directory: either it is made, or the name exists.
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

// settle removes the directory, or finds that the name is not a directory.
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

// probed interprets the removal of the directory.
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

// mustBeProbe distinguishes the directory that an earlier probe left from a result, for which it returns
// ENOTDIR. An NFS client may have cached a directory that is gone under this name: Refresh makes it notice
// changes of the results' directory, so that the lookup of the name asks the server.
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

// moveAway moves a probe's directory into the lock's directory, and removes it there, on NFS. An rmdir in
// place would be right while the lock is held, but a client repeats it until it gets a reply, and in
// version 4 an rmdir does not say what type of entry it is for: a late one would remove the result that a
// later holder has committed. The rename has the lock's directory as its target, and works only while that
// exists.
//
// If it is unknown whether the rename was carried out, it may be later, and would then take away what this
// holder commits: so the probe fails.
func (l *lease) moveAway(done *shareddir.Handle) error {
	renamed := done.Rename(l.record.Name, l.dir, l.forgot())
	if is(renamed, syscall.ENOTDIR, syscall.EEXIST, syscall.ENOTEMPTY) {
		// A deleted result is still there, because it could not be removed at once.
		_ = removeEntry(l.dir, l.forgot()) // the rename below shows whether this worked
		renamed = done.Rename(l.record.Name, l.dir, l.forgot())
	}
	if inDoubt(renamed) {
		l.setMoved(true)
		return renamed
	}
	if renamed != nil && !gone(renamed) {
		// It stays, and would block the result. The error has no number, so that it does not count as an
		// answer.
		return fmt.Errorf("move an earlier question's directory away: %v", renamed) //nolint:errorlint // see above
	}
	removed := l.dir.Rmdir(l.forgot())
	if removed != nil && !gone(removed) {
		l.setMoved(true)
	}
	return nil
}

// removeEntry removes a file or the empty directory of a probe.
func removeEntry(dir vfs.Dir, name string) error {
	err := dir.Unlink(name)
	if is(err, syscall.EISDIR, syscall.EPERM) {
		if removed := dir.Rmdir(name); !is(removed, syscall.ENOTDIR) {
			return removed
		}
	}
	return err
}
