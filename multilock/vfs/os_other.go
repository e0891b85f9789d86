//go:build !linux && !darwin && !freebsd

package vfs

import (
	"errors"
	"io/fs"
)

// ErrUnsupported says that this system lacks what the protocol is built on.
var ErrUnsupported = errors.New("a lock on a shared filesystem needs directory descriptors and a rename that replaces an empty directory, which this operating system does not have")

// OS is the operating system's file system; here it refuses to be used.
type OS struct{}

// OpenDir implements FS: it always fails with ErrUnsupported.
func (OS) OpenDir(path string) (Dir, error) {
	return nil, &fs.PathError{Op: "open", Path: path, Err: ErrUnsupported}
}
