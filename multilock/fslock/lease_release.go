package fslock

import (
	"bytes"
	"context"
	"errors"

	"github.com/multilock/go/multilock/source"
)

// Release removes what is beside the lock file, that file, and the empty
// directory. The lock file decides; the directory is removed by path, which can
// only succeed on an empty one.
func (l *lease) Release(context.Context) error {
	l.marking.Lock()
	defer l.marking.Unlock()
	if err := l.enter(); err != nil {
		return err
	}
	defer l.leave()
	if err := l.clearBesides(); err != nil {
		return err
	}
	switch err := l.lastLook(); {
	case errors.Is(err, source.ErrLost):
		return l.releaseLost(err)
	case err != nil:
		return err
	}
	switch err := l.dir.Unlink(l.locked()); {
	case err == nil:
		return l.released()
	case gone(err):
		return l.vanished()
	default:
		l.mu.Lock()
		l.tried = true
		l.mu.Unlock()
		return opError("release", l.record.Name, err)
	}
}

// lastLook makes sure that the lock file is there and ours before it is removed. Then the
// lock was held until this release, whatever happens after.
//
// On NFS, where a look costs a request, a lock that was held for a moment only goes without.
func (l *lease) lastLook() error {
	l.mu.Lock()
	loss := l.loss
	blind := l.tried || l.src.base.Kind.NFS && l.signs == 0 && recent(l.src.clock.Elapsed(l.since), l.record.Claim)
	l.mu.Unlock()
	if loss != nil || blind {
		return loss
	}
	if err := l.present(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.proven = true
	return nil
}

// released ends a release that was successful. An NFS client that removes a directory
// which nobody has open remembers that its name is absent, and need not ask before this
// host takes the lock again.
func (l *lease) released() error {
	if l.src.base.Kind.NFS && !l.src.legacy {
		l.mu.Lock()
		l.shutDir()
		l.mu.Unlock()
	}
	l.src.removeEmpty(l.group, l.dir, l.record.Name)
	return l.settle(nil)
}

// vanished is for a lock file that its removal did not find. Mostly that was removed by
// this very request, which was sent once more after its reply was lost. If the lock was
// held until this release, or nobody can have had it since, that is all there is to know.
// Otherwise it may as well have been broken before, and nothing tells the one from the other.
func (l *lease) vanished() error {
	l.mu.Lock()
	proven := l.proven
	l.mu.Unlock()
	if proven || l.untaken() {
		return l.released()
	}
	_ = l.settle(nil)
	return errors.Join(source.ErrUnsure, opError("release", l.record.Name, errVanished))
}

var errVanished = errors.New("its lock file was gone already, and somebody may have had the lock since: either this very request was carried out " +
	"twice, and all is well, or somebody broke the lock or removed its file before; \"multilock history\" says whether it was broken")

// untaken says whether the lock's directory is still there, without the lock file. Who
// takes the lock replaces it, and who breaks the lock removes it: so nobody has had the
// lock since. Where inode numbers do not count, links mostly do not either: fuse-overlayfs
// and MooseFS show a directory that was removed as if it was there.
func (l *lease) untaken() bool {
	info, err := l.dir.Stat()
	if err != nil || info.Links == 0 || !l.src.base.InodesCount() {
		return false
	}
	_, err = l.dir.StatName(l.locked())
	return gone(err)
}

// releaseLost removes the lock file of a lock that is not held any more, if it is ours:
// then its directory is elsewhere, and its name free or another's.
func (l *lease) releaseLost(loss error) error {
	content, err := readRecord(l.dir, l.record.Name)
	if err == nil && bytes.Equal(content, l.content) {
		if err := l.dir.Unlink(l.locked()); err != nil && !gone(err) {
			return opError("release", l.record.Name, err)
		}
	}
	return l.settle(loss)
}

// clearBesides removes the files beside the lock file that this lease may have left.
func (l *lease) clearBesides() error {
	l.mu.Lock()
	marked, renewed, pending, moved := l.marked, l.renewed, l.pending, l.moved
	l.mu.Unlock()
	var left []string
	if renewed {
		left = append(left, l.newJob())
	}
	if marked {
		left = append(left, l.job())
	}
	if pending {
		left = append(left, l.result())
	}
	if moved {
		left = append(left, l.forgot())
	}
	for _, entry := range left {
		if err := removeEntry(l.dir, entry); err != nil && !gone(err) {
			return opError("remove "+entry, l.record.Name, err)
		}
	}
	return nil
}
