package fslock

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// A lock directory that is not empty and has no lock file is in limbo: nobody
// holds the lock, and nobody can take it. It comes from a file that was removed
// while a process on the same NFS client or FUSE mount had it open, from a holder
// that wrote a result while its lock was being broken, from a Python peer that
// ended between its mkdir and its rename, or from foreign hands.

// unguard removes the guard of a lock that is gone. If that fails, limbo is left,
// which is cleared by age.
func (s *Source) unguard(dir vfs.Dir, name string) {
	if !s.legacy {
		return
	}
	if _, err := dir.StatName(name + lockedSuffix); gone(err) {
		_ = dir.Rmdir(name + peerSuffix)
	}
}

// removeEmpty removes a lock's directory once its file is gone. Leftovers of NFS
// go away with their last user, which is a matter of microseconds: a reader on
// this host that looked in that moment. What is left then is limbo, or an empty
// directory, which anybody may take.
func (s *Source) removeEmpty(group, dir vfs.Dir, name string) {
	s.unguard(dir, name)
	for range 3 {
		if err := group.Rmdir(name); !notEmpty(err) || s.base.Kind.Local {
			return
		}
		if !hasSilly(group, name) {
			return
		}
	}
}

// hasSilly says whether leftovers of NFS are in the directory that has the lock's name now.
func hasSilly(group vfs.Dir, name string) bool {
	dir, err := group.OpenDir(name)
	if err != nil {
		return false
	}
	defer dir.Close() //nolint:errcheck // a directory
	_, strays, _ := content(dir, name)
	return slices.ContainsFunc(strays, isSilly)
}

func isSilly(name string) bool {
	return strings.HasPrefix(name, sillyPrefix) || strings.HasPrefix(name, shareddir.HiddenPrefix)
}

// content lists a lock directory: whether the lock file is in it, and what else, as far
// as that is needed to tell what it is.
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

// ours says whether a leftover in a lock directory is one that the protocol, a
// Python peer, NFS or FUSE leaves there; all else is somebody's data.
func ours(entry, name string) bool {
	return isSilly(entry) || entry == name+peerSuffix || slices.Contains(besides(name), entry)
}

// limboLimit is for how long a limbo must have been unchanged before it is
// cleared, and limboWindow for how long that must have been watched. A Python
// peer that was only slow to fill its directory finds it gone, and says that it
// did not get the lock.
const (
	limboLimit  = 10 * time.Second
	limboWindow = 2 * time.Second
)

// limboVerdict decides whether a directory without a lock file may be cleared, and can be:
// an NFS client refuses to remove or move what is left of a file that is still open on its
// host. Other hosts can.
func (o *observer) limboVerdict(e evidence) source.Verdict {
	if o.busy != "" && slices.Contains(o.strays, o.busy) {
		if readers := readersOf(o.busy); len(readers) > 0 {
			const why = "its directory has no lock file, but %q, which %s on this host keeps open; end that, or wait for another host to clear it"
			return source.Verdict{State: source.StateHeld, Why: fmt.Sprintf(why, o.busy, strings.Join(readers, ", ")), Next: glance}
		}
	}
	return judgeLimbo(e, o.strays, o.name)
}

// judgeLimbo decides whether a directory without a lock file may be cleared.
func judgeLimbo(e evidence, strays []string, name string) source.Verdict {
	for _, entry := range strays {
		if !ours(entry, name) {
			why := fmt.Sprintf("its directory has no lock file, but %q, which is not multilock's; move that away", entry)
			return source.Verdict{State: source.StateHeld, Why: why, Next: 5 * glance}
		}
	}
	return judgeSilence(e, source.Limit{Silence: limboLimit, Window: limboWindow, Why: "its directory has no lock file; it is cleared if that does not change"})
}
