package fslock

import (
	"errors"
	"syscall"

	"github.com/multilock/go/multilock/fslock/internal/groupfiles"
	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// commitment is a result that is being committed.
type commitment struct {
	*lease
	content []byte
	file    vfs.File          // open until it is synced
	done    *shareddir.Handle // the directory of results
}

// commit writes the whole result beside the lock file, and renames it.
func (l *lease) commit(content []byte) error {
	c := &commitment{lease: l, content: content}
	if err := c.write(); err != nil {
		_ = l.dir.Unlink(l.result()) // if this fails, Release removes it; no rename was tried
		return l.assessment("write the result", err)
	}
	if c.file != nil {
		defer c.file.Close() //nolint:errcheck // synced by then, or in doubt anyhow
	}
	var err error
	if c.done, err = l.src.makeResults(); err != nil {
		_ = l.dir.Unlink(l.result())
		return resultsError(l.record.Name, err)
	}
	defer l.src.results.Done(c.done)
	renamed := l.dir.Rename(l.result(), c.done.Dir, l.record.Name)
	if renamed == nil && l.src.base.Kind.Local {
		return c.persist()
	}
	return c.confirm(renamed)
}

// write creates the file. An existing file of that name was left by an earlier call of ours.
//
// A result must survive a crash of the machine, so the file is synced before it gets its name. Where the
// file system is known to keep that order by itself, the file is only flushed, and reaches stable storage
// together with its name, which is several times as fast.
func (c *commitment) write() error {
	c.setPending(true)
	f, err := c.dir.Create(c.result(), shareddir.FileMode)
	if is(err, syscall.EEXIST) {
		if err := c.dir.Unlink(c.result()); err != nil && !gone(err) {
			return err
		}
		f, err = c.dir.Create(c.result(), shareddir.FileMode)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(c.content)
	switch {
	case err != nil:
	case c.src.base.Kind.Ordered:
		if err = f.Flush(); err == nil {
			c.file = f
			return nil
		}
	default:
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// persist ends a commit. On a file system that only this kernel sees, the directory's entry, and a file
// that was only flushed, are not on stable storage before a sync. An NFS server has stored both when it
// replies.
func (c *commitment) persist() error {
	c.setPending(false)
	if !c.src.base.Kind.Local {
		return nil
	}
	var err error
	if c.file != nil {
		err = c.file.Sync()
	}
	if err == nil {
		err = c.done.Sync()
	}
	if err != nil {
		return c.unsure("bring the result to stable storage", err)
	}
	return nil
}

// confirm finds out what the rename did, whatever it returned: replies get lost, and some clients report a
// failure as success. Finding our own bytes proves that it was carried out.
func (c *commitment) confirm(renamed error) error {
	mine, err := c.src.recorded(c.done, c.record.Name, c.content)
	switch {
	case mine:
		return c.persist()
	case is(renamed, syscall.EISDIR, syscall.ENOTEMPTY, syscall.EEXIST):
		return c.clearTheWay()
	case err != nil, renamed == nil, gone(renamed), inDoubt(renamed):
		return c.withdraw(errors.Join(renamed, err))
	}
	_ = c.dir.Unlink(c.result())
	return opError("commit the result", c.record.Name, renamed)
}

// clearTheWay removes an empty directory that a crashed Outcome left.
func (c *commitment) clearTheWay() error {
	err := c.removeProbe()
	if err == nil || gone(err) || is(err, syscall.ENOTDIR) {
		return groupfiles.ErrAgain
	}
	_ = c.dir.Unlink(c.result())
	if notEmpty(err) {
		return occupied(c.done, c.record.Name)
	}
	return opError("commit the result", c.record.Name, err)
}

func (c *commitment) removeProbe() error {
	if !c.src.base.Kind.NFS {
		return c.done.Rmdir(c.record.Name)
	}
	if err := c.src.mustBeProbe(c.done, c.record.Name); err != nil {
		return err
	}
	return c.moveAway(c.done)
}

// withdraw removes a result whose rename is in doubt. If it can be removed where it was written, the rename
// was not carried out, and a late one finds nothing. If it is not there, the rename was carried out after
// all, or the lock is broken.
func (c *commitment) withdraw(cause error) error {
	removed := c.dir.Unlink(c.result())
	switch {
	case removed == nil && (cause == nil || gone(cause)):
		c.src.results.Drop(c.done) // the directory of results is what has gone
		return groupfiles.ErrAgain
	case removed == nil:
		return opError("commit the result", c.record.Name, cause)
	case !gone(removed):
		return c.unsure("take the result back", errors.Join(cause, removed))
	}
	mine, err := c.src.recorded(c.done, c.record.Name, c.content)
	if mine {
		return c.persist()
	}
	if err == nil {
		err = c.renew()
	}
	switch {
	case err == nil:
		return groupfiles.ErrAgain // not recorded, and held: an earlier removal's reply was lost
	case errors.Is(err, source.ErrLost):
		return err
	}
	return c.unsure("learn whether the result was committed", errors.Join(cause, err))
}
