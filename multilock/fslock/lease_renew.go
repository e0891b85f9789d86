package fslock

import (
	"context"
	"time"

	"github.com/multilock/go/multilock/vfs"
)

// Renew sends a heartbeat through the descriptor and verifies that the lock file is in the directory, and
// the directory in its place. The touch alone would prove nothing: it also succeeds on a directory that a
// breaker has emptied, or that was moved.
func (l *lease) Renew(context.Context) error {
	if err := l.use(); err != nil {
		return err
	}
	defer l.leave()
	return l.renew()
}

func (l *lease) renew() error {
	begun, every := l.src.clock.Now(), l.looksAtAll()
	untouched := false
	if !every {
		var err error
		if untouched, err = l.untouched(); err != nil {
			return l.explain("look at the lock's directory", err)
		}
	}
	if err := l.dir.Touch(); err != nil {
		return l.explain("touch", err)
	}
	left := l.leaves()
	if !untouched || left == (sign{}) || l.src.clock.Elapsed(begun) >= prompt {
		if err := l.inPlace(); err != nil {
			return err
		}
	}
	if every && l.src.above == nil {
		if moved := l.src.base.Moved(l.group, l.src.group); moved != "" {
			return l.lost("its " + moved + " was moved, so other processes do not find it there")
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.signs++
	l.left = left
	return nil
}

// prompt is less than a server needs to crash and restart. After a crash, a server that exports async may
// have lost the lock's rename. If the crash happens between reading the directory's times and the touch,
// the times after the touch do not show it.
const prompt = time.Second

// looksAtAllEvery is how often a heartbeat makes every check: of the lock file and the directory by name,
// in case the directory's times missed a change, and of the path to them.
const looksAtAllEvery = 8

// looksAtAll reports whether the next heartbeat makes every check.
func (l *lease) looksAtAll() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.signs%looksAtAllEvery == looksAtAllEvery-1
}

// inPlace verifies that the lock file and the directory are in their places.
func (l *lease) inPlace() error {
	if err := l.present(); err != nil {
		return err
	}
	return l.placed()
}

// whole reports that the lock is in its place, and that nothing was added to it or removed from it since
// the lock file was seen there. It takes two requests. False is inconclusive.
func (l *lease) whole() bool {
	if !l.src.base.Kind.NFS {
		return false // a lookup by name costs no more, or the times may miss changes
	}
	named, err := l.lookedUp()
	own, failed := l.dir.StatCached()
	if err != nil || failed != nil || !named.Same(own) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := signOf(named)
	return now.grain() == 0 && (now == l.left || now == l.found)
}

// untouched reports whether the directory is as this lease's last heartbeat left it: if so, nothing was
// added or removed since, and the lock file is still there. A lookup by name costs an NFS client two more
// requests, because it asks for its permissions on a directory that the touch has changed.
func (l *lease) untouched() (bool, error) {
	l.mu.Lock()
	left := l.left
	l.mu.Unlock()
	if left == (sign{}) {
		return false, nil
	}
	info, err := l.dir.Stat()
	return err == nil && info.Links > 0 && signOf(info) == left, err
}

// leaves returns how a touch left the directory, by the times in the server's reply. It is zero if the
// directory is gone, and where it is not known to be on NFS: there a lookup by name costs no more, or the
// times may miss changes by others. It is also zero if the times have a coarse step, because a breaker that
// comes soon after a touch leaves the same times.
//
// If a breaker removes the lock file between untouched and the touch, the times include its removal and do
// not show it. The lock is free in that case: a new holder replaces the directory, and the next heartbeat
// finds it gone. If the directory is moved in that moment, the next lookup by name finds it.
func (l *lease) leaves() sign {
	if !l.src.base.Kind.NFS {
		return sign{}
	}
	info, err := l.dir.StatCached()
	if err != nil || info.Links == 0 || signOf(info).grain() > 0 {
		return sign{}
	}
	return signOf(info)
}

// present looks the lock file up by name on the server, and verifies that this lease wrote it.
func (l *lease) present() error {
	info, err := l.dir.StatName(l.locked())
	switch {
	case err != nil:
		return l.explain("look the lock file up", err)
	case info.Links == 0:
		return l.lost("the lock file was removed")
	case l.file.isAnother(info):
		return l.lost("another lock file has replaced its own, as that of a Python MultiLock does if --legacy-peers is missing")
	}
	return nil
}

// placed verifies that the lock's name still leads to this directory. A user may have moved it. Or a server
// that replies before it writes (an async export) may have lost the rename in a crash: the lock is intact,
// but back where it was staged, and its name is free for others. On NFS, both change the times of the
// directory.
//
// Where inode numbers prove nothing, or the name may no longer be looked up, the check passes.
func (l *lease) placed() error {
	if !l.src.base.InodesCount() {
		return nil
	}
	named, err := l.lookedUp()
	if err == nil {
		var own vfs.Info
		if own, err = l.dir.StatCached(); err == nil && named.Same(own) {
			return nil
		}
	}
	switch {
	case err == nil, gone(err):
		return l.lost("its directory is gone from its place: it was moved, or lost in a crash of the server")
	case forbidden(err):
		return nil
	}
	return opError("look up the lock's directory", l.record.Name, err)
}

// lookedUp returns what has the lock's name in the group's directory now.
func (l *lease) lookedUp() (vfs.Info, error) {
	if l.src.base.Kind.NFS {
		// If the group has changed, this makes the client drop its cached names.
		if _, err := l.group.Stat(); err != nil {
			return vfs.Info{}, err
		}
	}
	return l.group.StatName(l.record.Name)
}
