package shareddir

import (
	"syscall"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// OpError names the step in which err came up, what to do about it, and whether to wait.
// The name is that of the lock that it was about, if any.
func OpError(op, name string, err error) error {
	return &source.OpError{Source: "fslock", Op: op, Name: name, Err: err, Hint: hint(err), Passing: vfs.Passing(err)}
}

func opError(op string, err error) error { return OpError(op, "", err) }

func hint(err error) string {
	switch {
	case vfs.Is(err, syscall.EXDEV):
		return "the base directory, its .multilock and the lock group must be on one filesystem (also not separated by a quota tree, a subvolume or a bind mount)"
	case vfs.Is(err, syscall.EACCES, syscall.EPERM):
		return "check the permissions; a lock directory shared by several users must be writable for all of them and without the sticky bit"
	}
	return vfs.Hint(err)
}

// StagingError says why .multilock/staging cannot be used.
func (b *Base) StagingError(err error) error {
	if vfs.Is(err, syscall.ENOTDIR, syscall.ELOOP) {
		return &source.InvalidError{What: "base directory", Got: b.Path(), Why: "has something called .multilock that is not multilock's own directory; move it away", Err: err}
	}
	return opError("prepare .multilock/staging in the base directory", err)
}
