package fslock

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// A lock directory is an orphaned entry if it is not empty but has no lock file: the lock is not
// held, and cannot be acquired. Causes are a file that was removed while a process on the same NFS client
// or FUSE mount had it open, a holder that wrote a result while its lock was being broken, a Python peer
// that ended between its mkdir and its rename, and files that are not multilock's.

// unguard removes the guard of a lock that is gone. If that fails, an orphaned entry is left, which is
// cleared by age.
func (s *Source) unguard(dir vfs.Dir, name string) {
	if !s.legacy {
		return
	}
	if _, err := dir.StatName(name + lockedSuffix); gone(err) {
		_ = dir.Rmdir(name + peerSuffix)
	}
}

// removeEmpty removes a lock's directory once its lock file is gone. Leftovers of NFS disappear within
// microseconds, when a reader on this host that looked in that moment closes them. What remains after that
// is an orphaned entry, or an empty directory, which does not block the lock.
func (s *Source) removeEmpty(group, dir vfs.Dir, name string) {
	s.unguard(dir, name)
	for range 3 {
		if err := group.Rmdir(name); !notEmpty(err) {
			return
		}
		if s.base.Kind.Local {
			if info, err := dir.Stat(); err == nil && info.Links > 0 { // else the name is the next holder's by now
				s.moveAside(group, name)
			}
			return
		}
		locked, strays := contentOf(group, name)
		if !slices.ContainsFunc(strays, isSilly) {
			if !locked && len(strays) > 0 {
				s.moveAside(group, name)
			}
			return
		}
	}
}

// contentOf lists the directory that has the lock's name now.
func contentOf(group vfs.Dir, name string) (locked bool, strays []string) {
	dir, err := group.OpenDir(name)
	if err != nil {
		return false, nil
	}
	defer dir.Close() //nolint:errcheck // a directory
	locked, strays, _ = content(dir, name)
	return locked, strays
}

// foundPrefix begins the name of a staging directory for files that were found in a lock's directory.
const foundPrefix = ".found-"

// moveAside unblocks a lock that has just been released or broken, but whose directory contains another
// file: a job has written it there. The file is moved to the staging directory, so that it is not lost.
// With LegacyPeers it stays, because a Python peer may be about to fill the directory.
func (s *Source) moveAside(group vfs.Dir, name string) {
	if s.legacy {
		return
	}
	dir, err := group.OpenDir(name)
	if err != nil {
		return
	}
	defer dir.Close() //nolint:errcheck // a directory
	// Without a lock file the directory cannot become a lock again: a new lock replaces it, and only if it
	// is empty.
	locked, strays, err := content(dir, name)
	strays = slices.DeleteFunc(strays, func(entry string) bool { return ours(entry, name) })
	if err != nil || locked || len(strays) == 0 {
		return
	}
	staging, err := s.base.Staging.Use()
	if err != nil {
		return
	}
	defer s.base.Staging.Done(staging)
	found := foundPrefix + source.NewToken()
	if staging.Mkdir(found, shareddir.DirMode) != nil {
		return
	}
	to, err := staging.OpenDir(found)
	if err != nil {
		return
	}
	defer to.Close() //nolint:errcheck // a directory
	var failed error
	for _, entry := range strays {
		failed = errors.Join(failed, dir.Rename(entry, to, entry))
	}
	_ = group.Rmdir(name)
	if s.warn == nil {
		return
	}
	if failed != nil {
		s.warn(fmt.Sprintf("the directory of lock %q has something in it that is not multilock's, and keeps the lock from being taken: %v; move it away from %s", name, failed, dir.Path()))
		return
	}
	s.warn(fmt.Sprintf("the directory of lock %q is multilock's alone, and had something else in it; that is in %s now: %s", name, to.Path(), quoted(strays)))
}

func quoted(names []string) string {
	const most = 5
	text := fmt.Sprintf("%q", names[:min(len(names), most)])
	if len(names) > most {
		text += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return text
}

func isSilly(name string) bool {
	return strings.HasPrefix(name, sillyPrefix) || strings.HasPrefix(name, shareddir.HiddenPrefix)
}

// content lists a lock directory: whether it contains the lock file, and enough other entries to classify
// it.
func content(dir vfs.Dir, name string) (locked bool, strays []string, err error) {
	err = dir.List(func(e string) bool {
		switch {
		case e == name+lockedSuffix:
			locked = true
		case len(strays) < residueMost:
			strays = append(strays, e)
		}
		return true
	})
	return locked, strays, err
}

// ours reports whether a leftover in a lock directory comes from the protocol, a Python peer, NFS or FUSE;
// everything else is user data.
func ours(entry, name string) bool {
	return isSilly(entry) || entry == name+peerSuffix || slices.Contains(besides(name), entry)
}

// orphanLimit is how long an orphaned entry must have been unchanged before it is cleared, and orphanWindow
// for how long that must have been watched. A Python peer that was only slow to fill its directory finds it
// gone, and reports that it did not acquire the lock.
const (
	orphanLimit  = 10 * time.Second
	orphanWindow = 2 * time.Second
)

// orphanAssessment decides whether a directory without a lock file may be cleared, and can be: an NFS client
// cannot remove or move what is left of a file that is still open on its host. Other hosts can.
func (o *observer) orphanAssessment(e evidence) source.Assessment {
	if o.busy != "" && slices.Contains(o.strays, o.busy) {
		if readers := readersOf(o.busy); len(readers) > 0 {
			const why = "its directory has no lock file, but %q, which %s on this host keeps open; end that, or wait for another host to clear it"
			return source.Assessment{State: source.StateHeld, Why: fmt.Sprintf(why, o.busy, strings.Join(readers, ", ")), Next: glance}
		}
	}
	return judgeOrphan(e, o.strays, o.name)
}

// judgeOrphan decides whether a directory without a lock file may be cleared.
func judgeOrphan(e evidence, strays []string, name string) source.Assessment {
	for _, entry := range strays {
		if !ours(entry, name) {
			why := fmt.Sprintf("its directory has no lock file, but %q, which is not multilock's; move that away", entry)
			return source.Assessment{State: source.StateHeld, Why: why, Next: 5 * glance}
		}
	}
	return judgeSilence(e, source.Limit{Silence: orphanLimit, Window: orphanWindow, Why: "its directory has no lock file; it is cleared if that does not change"})
}
