//go:build linux || darwin || freebsd

package outfile

import (
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/multilock/go/multilock/vfs"
)

const (
	noFollow = unix.O_NOFOLLOW
	nonBlock = unix.O_NONBLOCK
)

// openAt opens the entry name of a directory. Writes to the file block, even if the open did not:
// a pipe's reader may be slow.
func openAt(dir vfs.Dir, name string, flags int, mode uint32) (*os.File, error) {
	at, err := dir.Pin()
	if err != nil {
		return nil, err
	}
	defer dir.Unpin()
	path := filepath.Join(dir.Path(), name)
	for {
		fd, err := unix.Openat(at, name, flags|unix.O_CLOEXEC|unix.O_NOCTTY, mode)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
		_ = unix.SetNonblock(fd, false) // an error means that the file never blocks
		return os.NewFile(uintptr(fd), path), nil
	}
}

// isLink reports whether an open failed because the entry is a link. FreeBSD uses an errno of its own.
func isLink(err error) bool { return vfs.Is(err, unix.ELOOP, unix.EMLINK) }

func readLink(dir vfs.Dir, name string) (string, error) {
	at, err := dir.Pin()
	if err != nil {
		return "", err
	}
	defer dir.Unpin()
	buffer := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(at, name, buffer)
	if err != nil {
		return "", err
	}
	return string(buffer[:n]), nil
}

func infoOf(f *os.File) (vfs.Info, error) {
	info, err := f.Stat()
	if err != nil {
		return vfs.Info{}, err
	}
	s := info.Sys().(*syscall.Stat_t)                                                       //nolint:forcetypeassert // true on every Unix
	return vfs.Info{Mode: info.Mode(), Links: uint64(s.Nlink), UID: s.Uid, GID: s.Gid}, nil //nolint:unconvert // width differs by platform
}
