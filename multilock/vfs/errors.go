package vfs

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
)

// Is says whether err carries one of the system's error numbers.
func Is(err error, numbers ...syscall.Errno) bool {
	var got syscall.Errno
	if !errors.As(err, &got) {
		return false
	}
	for _, n := range numbers {
		if got == n {
			return true
		}
	}
	return false
}

// Gone says that an entry does not exist, or that the directory it was looked
// for in does not exist any more.
func Gone(err error) bool { return Is(err, syscall.ENOENT, syscall.ESTALE) }

// NotEmpty says that a directory is in the way of a rename or of an rmdir. EEXIST
// is XFS's word for it, and NFSv3's (RFC 1813 3.3.14).
func NotEmpty(err error) bool { return Is(err, syscall.ENOTEMPTY, syscall.EEXIST) }

// InDoubt says that a call may have been carried out, or may be later on: its
// reply is lost or did not come in time.
func InDoubt(err error) bool {
	return err != nil && !Is(err, syscall.ENOENT, syscall.ESTALE, syscall.ENOTEMPTY, syscall.EEXIST, syscall.EPERM, syscall.EACCES,
		syscall.EBUSY, syscall.ENOTDIR, syscall.EISDIR, syscall.EXDEV, syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.ENAMETOOLONG,
		syscall.EINVAL, syscall.EMLINK, syscall.ELOOP, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM)
}

// Passing says that err may pass by itself: the server does not answer, the disk is full,
// the file system is read-only for a moment, this host is short of something. Waiting
// helps against no error that has no number of the system's.
func Passing(err error) bool {
	return errors.As(err, new(syscall.Errno)) &&
		(InDoubt(err) || Is(err, syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM))
}

// Hint tells a person what to do about an error that has nothing to do with what
// was being done, "" if there is nothing to tell.
func Hint(err error) string {
	switch {
	case Is(err, syscall.ENOSPC):
		return "the filesystem is full, or out of inodes; free some space"
	case Is(err, syscall.EDQUOT):
		return "your disk quota is used up"
	case Is(err, syscall.EROFS):
		return "the filesystem is read-only; choose another directory with -d"
	case Is(err, syscall.EMFILE, syscall.ENFILE):
		return "too many open files; raise the limit with ulimit -n"
	}
	return ""
}

// NameProblem says why name cannot be the name of an entry of at most limit
// bytes, "" if it can. Names are data: every byte is kept, but for what a file
// system cannot hold.
func NameProblem(name string, limit int) string {
	switch {
	case name == "":
		return "must not be empty"
	case name == "." || name == "..":
		return "means a directory; choose another"
	case strings.Contains(name, "/"):
		return "must not contain a slash; use -g for the group and -d for the directory"
	case strings.ContainsRune(name, 0):
		return "must not contain a NUL byte"
	case len(name) > limit:
		return fmt.Sprintf("is %d bytes long; at most %d fit", len(name), limit)
	}
	return ""
}
