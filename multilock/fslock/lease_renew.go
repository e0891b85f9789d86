package fslock

import (
	"context"
	"time"

	"github.com/multilock/go/multilock/vfs"
)

// Renew gives a sign of life through the descriptor and makes sure that the lock
// file is in the directory, and the directory in its place. The touch alone would prove
// nothing: it also succeeds on a directory that a breaker has emptied, or somebody moved.
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
			return l.lost("its " + moved + " was moved, and others who come there find another or none")
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.signs++
	l.left = left
	return nil
}

// prompt is less than it takes a server to crash and to come back. One that exports async may
// have forgotten the lock's rename then: if that came between the look at the directory's times
// and the touch, the times that the touch left would never tell.
const prompt = time.Second

// looksAtAllEvery is how often a sign of life comes with all looks in any case: for the
// lock file and the directory, so that what the directory's times did not tell comes to
// light in the end, and for the way that leads to them.
const looksAtAllEvery = 8

// looksAtAll says whether the next sign of life does.
func (l *lease) looksAtAll() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.signs%looksAtAllEvery == looksAtAllEvery-1
}

// inPlace makes sure that the lock file and the directory are where they belong.
func (l *lease) inPlace() error {
	if err := l.present(); err != nil {
		return err
	}
	return l.placed()
}

// whole says that the lock is in its place, and that nothing in it was added or removed
// since the lock file was seen there: two requests. False says nothing.
func (l *lease) whole() bool {
	if !l.src.base.Kind.NFS {
		return false // a look by name costs no more, or the times may not tell
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

// untouched says whether the directory is as this lease's last sign of life left it:
// then nothing in it was added or removed since, and the lock file is still there. To
// look it up by name costs an NFS client two requests more, for it asks for its
// permissions on a directory that the touch has changed.
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

// leaves is how a touch leaves the directory, by the times in the server's reply; zero
// if it is gone, and where it is not known to be NFS: there a look by name costs no more,
// or the times may not tell what others do. Nor do they where they have a coarse step: a
// breaker who comes soon after a touch leaves the same.
//
// Had a breaker removed the lock file between untouched and this, the times would be his,
// and would not tell. Nobody has the lock then: whoever takes it replaces the directory,
// and the next sign of life finds it gone. What moved the directory in that moment comes
// to light with the next look by name.
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

// present looks the lock file up by name, as the server has it now, and makes sure that
// it is the one that this lease wrote.
func (l *lease) present() error {
	info, err := l.dir.StatName(l.locked())
	switch {
	case err != nil:
		return l.explain("look the lock file up", err)
	case info.Links == 0:
		return l.lost("the lock file was removed")
	case l.file.isAnother(info):
		return l.lost("another lock file has taken the place of its own, as that of a Python MultiLock does for which nobody gave --legacy-peers")
	}
	return nil
}

// placed makes sure that the lock's name still leads to this directory. Somebody may
// have moved it. And a server that answers before it writes (an async export) may have
// forgotten the rename in a crash: then the lock is whole, back where it was staged, and
// its name is free for others. On NFS, both change the times of the directory.
//
// Where inode numbers prove nothing, or the name may not be looked up any more, nothing
// follows.
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
		return l.lost("its directory is not in its place any more: it was moved, or its server forgot it in a crash")
	case forbidden(err):
		return nil
	}
	return opError("look up the lock's directory", l.record.Name, err)
}

// lookedUp is what has the lock's name now, in the group's directory.
func (l *lease) lookedUp() (vfs.Info, error) {
	if l.src.base.Kind.NFS {
		// The client forgets the names in the group, if it has changed.
		if _, err := l.group.Stat(); err != nil {
			return vfs.Info{}, err
		}
	}
	return l.group.StatName(l.record.Name)
}
