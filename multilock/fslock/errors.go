package fslock

import (
	"syscall"

	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/vfs"
)

// refusal classifies what a file system can answer to the rename, and to the
// calls before it.
func is(err error, numbers ...syscall.Errno) bool { return vfs.Is(err, numbers...) }

// gone says that an entry does not exist, or that the directory it was looked
// for in does not exist any more.
func gone(err error) bool { return vfs.Gone(err) }

// ignoreGone is nil for what exists no longer, where that is what was wanted.
func ignoreGone(err error) error {
	if gone(err) {
		return nil
	}
	return err
}

// notEmpty says that a directory is in the way of a rename or of an rmdir.
func notEmpty(err error) bool { return vfs.NotEmpty(err) }

// forbidden may mean permissions, or, from some servers, "busy" or "exists".
func forbidden(err error) bool { return is(err, syscall.EPERM, syscall.EACCES, syscall.EBUSY) }

// inDoubt says that a call may have been carried out, or may be later on: its
// reply is lost or did not come in time.
func inDoubt(err error) bool { return vfs.InDoubt(err) }

// opError names the step in which err came up, what to do about it, and whether to wait.
func opError(op, name string, err error) error { return shareddir.OpError(op, name, err) }
