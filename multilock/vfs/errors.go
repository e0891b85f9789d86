package vfs

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
)

// Is reports whether err wraps one of these error numbers.
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

// Gone reports whether an entry does not exist, or the directory in which it was looked up no longer
// exists.
func Gone(err error) bool { return Is(err, syscall.ENOENT, syscall.ESTALE) }

// NotEmpty reports whether a rename or rmdir failed because the directory is not empty. XFS returns EEXIST
// for that, and so does NFSv3 (RFC 1813 3.3.14).
func NotEmpty(err error) bool { return Is(err, syscall.ENOTEMPTY, syscall.EEXIST) }

// InDoubt reports whether a failed call may have taken effect, or may still do so: its reply was lost
// or late.
func InDoubt(err error) bool {
	return err != nil && !Is(err, syscall.ENOENT, syscall.ESTALE, syscall.ENOTEMPTY, syscall.EEXIST, syscall.EPERM, syscall.EACCES,
		syscall.EBUSY, syscall.ENOTDIR, syscall.EISDIR, syscall.EXDEV, syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.ENAMETOOLONG,
		syscall.EINVAL, syscall.EMLINK, syscall.ELOOP, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM)
}

// Passing reports whether err may be temporary: the server does not answer, the disk is full, the file
// system is read-only for a moment, or this host lacks a resource. An error without a system error number
// is not temporary.
func Passing(err error) bool {
	return errors.As(err, new(syscall.Errno)) &&
		(InDoubt(err) || Is(err, syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM))
}

// Hint returns advice for people about an error that is unrelated to the operation that failed, "" if
// there is none.
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

// NameProblem returns why name is not a valid entry name of at most limit bytes, "" if it is valid. Names
// are data: every byte is allowed that a file system can store.
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
