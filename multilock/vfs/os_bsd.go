//go:build darwin || freebsd

package vfs

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

const (
	durable    = unix.O_SYNC
	searchOnly = unix.O_RDONLY
)

// openBelow relies on the rule that names have no slash.
func openBelow(dir int, name string, flags int, mode uint32) (int, error) {
	return unix.Openat(dir, name, flags, mode)
}

func statFD(fd int) (Info, error) {
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil {
		return Info{}, err
	}
	return infoOf(&s), nil
}

func statAt(fd int, name string) (Info, error) {
	var s unix.Stat_t
	if err := unix.Fstatat(fd, name, &s, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return Info{}, err
	}
	return infoOf(&s), nil
}

func statCached(fd int) (Info, error) { return statFD(fd) }

func touch(fd int) error { return touchat(fd, ".") }

// Only root may get handles on these systems (getfh(2)).
func handleFD(int) (Handle, error) { return "", errors.ErrUnsupported }

func handleAt(int, string) (Handle, error) { return "", errors.ErrUnsupported }

func infoOf(s *unix.Stat_t) Info {
	return Info{
		Mode:       fileMode(uint32(s.Mode)),
		Size:       s.Size,
		ModTime:    time.Unix(s.Mtim.Unix()),
		ChangeTime: time.Unix(s.Ctim.Unix()),
		Device:     uint64(s.Dev), //nolint:gosec,unconvert // width differs by platform
		Inode:      s.Ino,
		Links:      uint64(s.Nlink), //nolint:unconvert // width differs by platform
		UID:        s.Uid,
		GID:        s.Gid,
	}
}

// fileSystem does not determine the type, and takes every file system for a shared one. The only cost
// is a sync per acquisition.
func fileSystem(int) (FileSystem, error) { return FileSystem{Type: "any", ManyClocks: true}, nil }

// flush is a full sync: these systems have nothing cheaper.
func flush(fd int) error { return unix.Fsync(fd) }
