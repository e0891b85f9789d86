package fslock

import (
	"bytes"
	"errors"
	"syscall"

	"github.com/multilock/go/multilock/fslock/internal/groupfiles"
	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// readBack finds out what the rename did, whatever it returned: replies get lost, and some clients report a
// failure as success.
//
// Finding our own bytes is proof even if they come from a cache: no other process ever wrote them, and the
// client knows their directory under that name from the server's reply to a lookup or to the rename. Any
// other content may come from a cache, and is read once more from the server.
func (c *contender) readBack(group *shareddir.Handle, renamed error) (source.Lease, error) {
	if renamed == nil && c.fresh(c.staged) {
		if dir, found := c.recognized(group); dir != nil {
			return c.acquired(group, dir, found)
		}
	}
	dir, content, err := c.src.open(group, c.name)
	if !c.src.base.Kind.Local && !c.isOurs(content) {
		if dir != nil {
			_ = dir.Close()
		}
		dir, content, err = c.src.openFresh(group, c.name)
	}
	if c.isOurs(content) {
		return c.acquired(group, dir, sign{})
	}
	if dir != nil {
		_ = dir.Close()
	}
	return c.notOurs(group, renamed, content, err)
}

// recognized opens the lock if its file is the one that was staged, by the file's handle: no other process
// wrote to that file. This costs an NFS client only a lookup of the name. Nil is inconclusive.
//
// It is only valid so soon after the staging that no process can have judged this holder dead. Later the
// file may be gone, and some servers that re-export another one reuse its handle for another file.
//
// The sign is the directory's, from before the look; zero if unknown.
func (c *contender) recognized(group *shareddir.Handle) (vfs.Dir, sign) {
	if c.staged.file.handle == "" {
		return nil, sign{}
	}
	dir, err := group.OpenDir(c.name)
	if err != nil {
		return nil, sign{}
	}
	var found sign
	if info, err := dir.StatCached(); err == nil {
		found = signOf(info)
	}
	if file, _ := dir.Handle(c.name + lockedSuffix); file != c.staged.file.handle || !c.fresh(c.staged) {
		_ = dir.Close()
		return nil, sign{}
	}
	return dir, found
}

func (c *contender) isOurs(content []byte) bool { return bytes.Equal(content, c.staged.content) }

// notOurs interprets the result of the rename, and what is in place instead of our lock.
func (c *contender) notOurs(group *shareddir.Handle, renamed error, content []byte, err error) (source.Lease, error) {
	switch {
	case inDoubt(renamed), inDoubt(err), renamed == nil && err != nil && !gone(err):
		return nil, c.giveUp(errors.Join(renamed, err))
	case is(renamed, syscall.ENOTDIR), is(err, syscall.ENOTDIR, syscall.ELOOP):
		return nil, c.src.inTheWay(c.name)
	case renamed == nil || gone(renamed):
		return nil, c.moved(group, renamed, err == nil)
	case forbidden(renamed):
		return nil, c.forbidden(group, renamed, content)
	default:
		return nil, opError("rename", c.name, renamed)
	}
}

// moved handles a rename that reported success without effect, or did not find something: the group, which
// a barrier may have removed; or the staged directory, which has become a lock or was swept.
//
// If the group exists, the rename did not find the staged directory. A client may still find that directory
// by name: where times are coarse, it caches the name as long as nothing else changes, and reaches the
// directory by its handle, wherever that is by now.
func (c *contender) moved(group *shareddir.Handle, renamed error, held bool) error {
	if held {
		_ = c.abandon()
		return source.ErrHeld
	}
	if info, err := group.Stat(); gone(renamed) && err == nil && info.Links > 0 {
		_ = c.abandon()
		return groupfiles.ErrAgain
	}
	if present, err := c.staged.present(); err != nil || !present {
		_ = c.abandon()
	}
	c.src.groupDir.Drop(group)
	return groupfiles.ErrAgain
}

// forbidden distinguishes a directory that blocks the rename from missing permissions: some servers return
// the same error for both. The blocking lock may have been released since, and another acquired, so the
// rename is tried a few more times before permissions are blamed.
func (c *contender) forbidden(group *shareddir.Handle, renamed error, content []byte) error {
	removed := error(nil)
	if content == nil {
		removed = group.Rmdir(c.name)
	}
	switch {
	case content != nil, notEmpty(removed):
		c.denied = 0
		return source.ErrHeld
	case removed == nil:
		return groupfiles.ErrAgain
	case (gone(removed) || forbidden(removed)) && c.denied < maxDenied:
		c.denied++
		return groupfiles.ErrAgain
	}
	c.denied = 0
	return opError("rename", c.name, renamed)
}

// maxDenied is more often than locks are acquired and released between a rename and the look that follows.
const maxDenied = 20

// giveUp withdraws an attempt whose outcome cannot be determined.
func (c *contender) giveUp(cause error) error {
	if err := c.abandon(); err != nil {
		return errors.Join(source.ErrUnsure, opError("take the attempt back", c.name, errors.Join(cause, err)))
	}
	return opError("rename", c.name, cause)
}
