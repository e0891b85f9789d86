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

// readBack learns what the rename did, whatever it answered: replies get lost,
// and some clients call a failure a success.
//
// Finding our own bytes is proof even if a cache helped to find them: nobody else
// ever wrote them, and it has their directory under that name from the server, which
// said so when it was asked for the name, or for the rename. Anything else may be a cache's memory, and is looked at
// once more, fresh from the server.
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

// recognized opens the lock if the file in it is the very one that was staged, which
// takes an NFS client no more than looking up its name: nobody else wrote to that file.
// Nil says nothing.
//
// It has to be so soon after the staging that nobody can have taken this holder for
// dead: the file may be gone otherwise, and not every server behind a server keeps the
// promise never to give its handle to another.
//
// The sign is the directory's from before the look: zero if it is not known.
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

// notOurs draws the conclusion from what the rename answered, and what is in
// place instead of our lock.
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

// moved handles a rename that succeeded without effect, or found something
// missing: the group, which a barrier may have removed; or the staged
// directory, which is somebody's lock now or was swept away.
//
// Where the group is there, it is the staged directory that the rename did not find. A client may
// go on finding that by name: where times are coarse, it remembers the name as long as nothing
// else changes, and reaches the directory by its handle, wherever that is by now.
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

// forbidden tells a directory that is in the way from permissions that are
// missing: some servers say the same for both. Who was in the way may have left since, and
// another have come: so it is tried a few times more before permissions are blamed.
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

// maxDenied is more often than holders come and go between a rename and the look that follows.
const maxDenied = 20

// giveUp takes back an attempt whose outcome cannot be learned.
func (c *contender) giveUp(cause error) error {
	if err := c.abandon(); err != nil {
		return errors.Join(source.ErrUnsure, opError("take the attempt back", c.name, errors.Join(cause, err)))
	}
	return opError("rename", c.name, cause)
}
