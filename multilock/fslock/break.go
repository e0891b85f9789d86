package fslock

import (
	"context"
	"fmt"
	"strings"
	"syscall"

	"github.com/multilock/go/multilock/fslock/internal/groupfiles"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// Break implements source.Observer. It looks once more right before, and
// removes nothing but what is in the very directory that was judged: through
// its descriptor, so that a lock which somebody took meanwhile is out of reach.
func (o *observer) Break(ctx context.Context) error {
	if o.dir == nil || o.verdict.State != source.StateDead {
		return source.ErrHeld
	}
	info, err := o.dir.Stat()
	switch {
	case gone(err) || (err == nil && info.Links == 0):
		return nil // somebody else was faster
	case err != nil:
		return opError("break", o.name, err)
	case signOf(info) != o.watch.Last():
		return source.ErrHeld
	}
	dead, why := o.record, o.verdict.Why
	removed, err := o.remove()
	if removed && o.src.above == nil {
		// The lock is broken; that the history could not be written is no reason to
		// say anything else.
		_ = o.src.Append(ctx, source.BrokeEvent(dead, o.src.self, o.src.user, why))
	}
	return err
}

// Force implements source.Observer. It leaves the history to its caller, who
// knows why.
func (o *observer) Force(context.Context) error {
	if o.dir == nil {
		if o.record.Foreign != "" {
			return opError("break", o.name, fmt.Errorf("%s", o.record.Foreign))
		}
		return source.ErrFree
	}
	_, err := o.remove()
	return err
}

// remove empties the judged directory and removes it. What is there beside the
// lock file goes first, so that a crash in between leaves a lock, not a limbo.
// With its file of a result a holder that lost cannot commit any more; one that
// it writes after that keeps the directory from becoming free.
func (o *observer) remove() (removed bool, err error) {
	if o.limbo {
		return false, o.clearLimbo()
	}
	for _, entry := range besides(o.name) {
		if err := removeEntry(o.dir, entry); err != nil && !gone(err) {
			return false, opError("break", o.name, err)
		}
	}
	err = o.removeLocked()
	o.removeDirectory() // empty it is also if a reply was lost
	if gone(err) {
		o.forget() // somebody else was faster; what is left there, the next look reads anew
		return false, nil
	}
	if err != nil {
		return false, opError("break", o.name, err)
	}
	return true, nil
}

// removeLocked takes the lock file out of the judged directory, through its descriptor.
//
// On NFS it is moved to the staging directory first: somebody on this host may have it
// open. Removed where it is it would leave a file there (.nfs...) that nobody on this host
// can remove or move, and that keeps the lock from being taken.
func (o *observer) removeLocked() error {
	locked := o.name + lockedSuffix
	if o.src.base.Kind.NFS && o.src.discardFrom(o.dir, locked) {
		return nil
	}
	return o.dir.Unlink(locked)
}

// discardFrom moves a file to the trash and removes it there, and reports whether it was
// moved. A rename whose reply was lost may have failed when it was repeated; then what is
// in the trash, under a name that nobody else knows, shows that it was carried out. What
// cannot be removed there is a leftover.
func (s *Source) discardFrom(dir vfs.Dir, file string) (moved bool) {
	token := source.NewToken()
	staging, err := s.base.Staging.Use()
	if err != nil {
		return false
	}
	defer s.base.Staging.Done(staging)
	moved = dir.Rename(file, staging.Dir, groupfiles.TrashPrefix+token) == nil
	return staging.Unlink(groupfiles.TrashPrefix+token) == nil || moved
}

func (o *observer) removeDirectory() {
	group, err := o.src.groupDir.Use()
	if err != nil {
		return // an empty directory is free
	}
	defer o.src.groupDir.Done(group)
	o.src.removeEmpty(group, o.dir, o.name)
}

// clearLimbo removes what the protocol, a peer or NFS left in a directory
// without a lock file.
func (o *observer) clearLimbo() error {
	for _, entry := range o.strays {
		if !ours(entry, o.name) {
			return &source.InvalidError{
				What: "lock name", Got: o.name,
				Why: fmt.Sprintf("%s holds files that are not multilock's (%s); move them away", o.dir.Path(), strings.Join(o.strays, ", ")),
			}
		}
	}
	for _, entry := range o.strays {
		err := o.dir.Unlink(entry)
		if is(err, syscall.EISDIR, syscall.EPERM) {
			err = o.dir.Rmdir(entry) // the guard of a lock
		}
		if is(err, syscall.EBUSY) {
			o.busy = entry
			return source.ErrHeld // it goes with its reader
		}
		if err != nil && !gone(err) {
			return opError("clear what was left of the lock", o.name, err)
		}
	}
	o.removeDirectory()
	return nil
}
