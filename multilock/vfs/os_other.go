//go:build !linux && !darwin && !freebsd

package vfs

import (
	"errors"
	"io/fs"
)

// ErrUnsupported means that the system lacks the calls that the protocol needs.
var ErrUnsupported = errors.New("a lock on a shared filesystem needs directory descriptors and a rename that replaces an empty directory, which this operating system does not have")

// OS is the operating system's file system; on this system all its calls fail.
type OS struct{}

// OpenDir implements FS: it always fails with ErrUnsupported.
func (OS) OpenDir(path string) (Dir, error) {
	return nil, &fs.PathError{Op: "open", Path: path, Err: ErrUnsupported}
}
