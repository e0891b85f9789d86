package fslock

import (
	"bytes"
	"context"
	"errors"

	"github.com/multilock/go/multilock/source"
)

// Release removes the files beside the lock file, the lock file, and the empty directory. The removal of
// the lock file is what releases the lock; the directory is removed by path, which only succeeds if it is
// empty.
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

// lastLook verifies that our lock file is there before it is removed. If so, the lock was held until this
// release, whatever happens later.
//
// On NFS, where the check costs a request, it is skipped for a lock that was held only for a moment.
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

// released ends a successful release. An NFS client that removes a directory which no process has open
// remembers that its name is absent, and need not ask when this host acquires the lock again.
func (l *lease) released() error {
	if l.src.base.Kind.NFS && !l.src.legacy {
		l.mu.Lock()
		l.shutDir()
		l.mu.Unlock()
	}
	l.src.removeEmpty(l.group, l.dir, l.record.Name)
	return l.settle(nil)
}

// vanished is for a lock file that was already gone when it was to be removed. Usually this request removed
// it and was then repeated after its reply was lost. That is certain if the lock was held until this
// release, or if no other process can have held it since. Otherwise the lock may have been broken earlier,
// and the two cases cannot be distinguished.
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

var errVanished = errors.New("its lock file was gone already, and another process may have held the lock since: either this request was carried out " +
	"twice, which is harmless, or another process broke the lock or removed its file before; \"multilock history\" shows whether it was broken")

// untaken reports whether the lock's directory still exists, without the lock file. A new holder replaces
// the directory, and a breaker removes it, so no other process has held the lock since. Where inode numbers
// do not count, link counts usually do not either: fuse-overlayfs and MooseFS show a removed directory as
// if it was still there.
func (l *lease) untaken() bool {
	info, err := l.dir.Stat()
	if err != nil || info.Links == 0 || !l.src.base.InodesCount() {
		return false
	}
	_, err = l.dir.StatName(l.locked())
	return gone(err)
}

// releaseLost removes the lock file of a lock that is not held any more, if the file is ours: its directory
// was moved, and its name is free or belongs to another lock.
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
