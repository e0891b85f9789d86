package fslock

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/vfs"
)

// A lock directory that is not empty and has no lock file is in limbo: nobody
// holds the lock, and nobody can take it. It comes from a file that was removed
// while a process on the same NFS client had it open (.nfs...), from a Python
// peer that ended between its mkdir and its rename, or from foreign hands.

// guard makes a lock directory safe from a Python peer that stood still between
// its mkdir and its next step for so long that it was cleared away: when it goes
// on, by path, it finds the name of its lock file taken, by a directory, which
// it can neither create nor rename onto ours.
func (s *Source) guard(dir vfs.Dir, name string) error {
	if !s.legacy {
		return nil
	}
	return dir.Mkdir(name+peerSuffix, dirMode)
}

// unguard must come after the removal of the lock file.
func (s *Source) unguard(dir vfs.Dir, name string) {
	if s.legacy {
		_ = dir.Rmdir(name + peerSuffix) // what is left is limbo, which is cleared by age
	}
}

// removeEmpty removes a lock's directory once its file is gone. Leftovers of NFS
// go away with their last user, which is a matter of microseconds: a reader on
// this host that looked in that moment. What is left then is limbo, or an empty
// directory, which anybody may take.
func (s *Source) removeEmpty(group, dir vfs.Dir, name string) {
	s.unguard(dir, name)
	for range 3 {
		if err := group.Rmdir(name); !notEmpty(err) || s.kind.Local {
			return
		}
		if _, strays, err := content(dir, name); err != nil || !slices.ContainsFunc(strays, isSilly) {
			return
		}
	}
}

func isSilly(name string) bool { return strings.HasPrefix(name, sillyPrefix) }

// content lists a lock directory: whether the lock file is in it, and what else.
func content(dir vfs.Dir, name string) (locked bool, strays []string, err error) {
	entries, err := dir.List()
	if err != nil {
		return false, nil, err
	}
	for _, e := range entries {
		if e == name+lockedSuffix {
			locked = true
			continue
		}
		strays = append(strays, e)
	}
	return locked, strays, nil
}

// ours says whether a leftover in a lock directory is one that the protocol, a
// Python peer or NFS leaves there; all else is somebody's data.
func ours(entry, name string) bool {
	return isSilly(entry) || entry == name+jobSuffix || entry == name+peerSuffix
}

// limboLimit is for how long a limbo must have been unchanged before it is
// cleared, and limboWindow for how long that must have been watched. A Python
// peer that was only slow to fill its directory finds it gone, and says that it
// did not get the lock.
const (
	limboLimit  = 10 * time.Second
	limboWindow = 2 * time.Second
)

// judgeLimbo decides whether a directory without a lock file may be cleared.
func judgeLimbo(e evidence, strays []string, name string) verdict {
	for _, entry := range strays {
		if !ours(entry, name) {
			return verdict{multilock.Held, fmt.Sprintf("its directory has no lock file, but %q, which is not multilock's; move that away", entry), 5 * glance}
		}
	}
	e.maxAge = 0
	return judgeSilence(e, limboLimit, limboWindow, "its directory has no lock file; it is cleared if that does not change")
}
