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

// Break implements source.Observer. It inspects the lock once more right before, and then works through the
// descriptor of the judged directory, so it cannot remove a lock that was acquired meanwhile.
func (o *observer) Break(ctx context.Context) error {
	if o.dir == nil || o.assessment.State != source.StateDead {
		return source.ErrHeld
	}
	info, err := o.dir.Stat()
	switch {
	case gone(err) || (err == nil && info.Links == 0):
		return nil // another process broke it first
	case err != nil:
		return opError("break", o.name, err)
	case signOf(info) != o.watch.Last():
		return source.ErrHeld
	}
	dead, why := o.record, o.assessment.Why
	removed, err := o.remove()
	if removed && o.src.above == nil {
		// The lock is broken, so a failure to write the history is not an error of Break.
		_ = o.src.Append(ctx, source.BrokeEvent(dead, o.src.self, o.src.user, why))
	}
	return err
}

// Force implements source.Observer. The caller writes the history, because it knows the reason.
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

// remove empties the judged directory and removes it. The files beside the lock file go first, so that a
// crash in between leaves a lock, not an orphaned entry. Once its result file is gone, a holder that lost
// the lock can no longer commit; if it writes another one, the directory is not empty and the name stays
// blocked.
func (o *observer) remove() (removed bool, err error) {
	if o.orphan {
		return false, o.clearOrphan()
	}
	for _, entry := range besides(o.name) {
		if err := removeEntry(o.dir, entry); err != nil && !gone(err) {
			return false, opError("break", o.name, err)
		}
	}
	err = o.removeLocked()
	o.removeDirectory() // the lock file may be gone even if the reply was lost
	if gone(err) {
		o.forget() // another process broke it first; the next look inspects what is there now
		return false, nil
	}
	if err != nil {
		return false, opError("break", o.name, err)
	}
	return true, nil
}

// removeLocked removes the lock file from the judged directory, through its descriptor.
//
// On NFS it first moves the file to the staging directory. If a process on this host has the file open,
// removing it in place would leave a .nfs... file that no process on this host can remove or move, and the
// lock could not be acquired.
func (o *observer) removeLocked() error {
	locked := o.name + lockedSuffix
	if o.src.base.Kind.NFS && o.src.discardFrom(o.dir, locked) {
		return nil
	}
	return o.dir.Unlink(locked)
}

// discardFrom moves a file to the trash, removes it there, and reports whether it was moved. A rename whose
// reply was lost may fail when the client repeats it. In that case the file is in the trash, under a name
// that only this call knows, which proves that the rename was carried out. A file that cannot be removed
// from the trash is a leftover.
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
		return // an empty directory does not block the lock
	}
	defer o.src.groupDir.Done(group)
	o.src.removeEmpty(group, o.dir, o.name)
}

// clearOrphan removes what the protocol, a peer or NFS left in a directory without a lock file.
func (o *observer) clearOrphan() error {
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
			return source.ErrHeld // the entry disappears when its reader closes it
		}
		if err != nil && !gone(err) {
			return opError("clear what was left of the lock", o.name, err)
		}
	}
	o.removeDirectory()
	return nil
}
