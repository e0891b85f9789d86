package vfs

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

const (
	durable    = unix.O_DSYNC
	searchOnly = unix.O_PATH
)

// openBelow opens an entry of the directory itself, never through a link, whatever the name. Before
// Linux 5.6, and in containers that hide openat2, it uses only flags, which is enough for a name
// without a slash.
//
// openat2 returns EXDEV for an entry that is moved to another directory at the same time: it is no longer
// below the directory in the final check (complete_walk in Linux fs/namei.c). A retry finds the entry
// that has the name now.
func openBelow(dir int, name string, flags int, mode uint32) (fd int, err error) {
	const looks = 100
	for range looks {
		fd, err = unix.Openat2(dir, name, &unix.OpenHow{
			Flags: uint64(flags | unix.O_LARGEFILE), Mode: uint64(mode), //nolint:gosec // flags are not negative
			Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
		})
		if err != unix.EXDEV {
			break
		}
	}
	if err == unix.ENOSYS || err == unix.EPERM {
		return unix.Openat(dir, name, flags, mode)
	}
	return fd, err
}

// forced makes a network file system ask its server. It does so only if the mask also includes times or
// size (Linux fs/nfs/inode.c, nfs_getattr).
const forced = unix.AT_STATX_FORCE_SYNC

func statCached(fd int) (Info, error) {
	return statx(fd, "", unix.AT_STATX_DONT_SYNC|unix.AT_EMPTY_PATH)
}

func statFD(fd int) (Info, error) { return statx(fd, "", forced|unix.AT_EMPTY_PATH) }

func statAt(fd int, name string) (Info, error) {
	return statx(fd, name, forced|unix.AT_SYMLINK_NOFOLLOW)
}

func statx(fd int, name string, flags int) (Info, error) {
	var s unix.Statx_t
	if err := unix.Statx(fd, name, flags, unix.STATX_BASIC_STATS, &s); err != nil {
		return Info{}, err
	}
	return Info{
		Mode:       fileMode(uint32(s.Mode)),
		Size:       int64(s.Size), //nolint:gosec // sizes fit
		ModTime:    time.Unix(s.Mtime.Sec, int64(s.Mtime.Nsec)),
		ChangeTime: time.Unix(s.Ctime.Sec, int64(s.Ctime.Nsec)),
		Device:     unix.Mkdev(s.Dev_major, s.Dev_minor),
		Inode:      s.Ino,
		Links:      uint64(s.Nlink),
		UID:        s.Uid,
		GID:        s.Gid,
	}, nil
}

// touch uses no path, not even ".", like futimens(3): before a lookup in a directory, an NFS client
// requests its permissions.
func touch(fd int) error {
	if _, _, err := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(fd), 0, 0, 0, 0, 0); err != 0 {
		return err
	}
	return nil
}

func handleFD(fd int) (Handle, error) {
	return handleOf(unix.NameToHandleAt(fd, "", unix.AT_EMPTY_PATH))
}

func handleAt(fd int, name string) (Handle, error) { return handleOf(unix.NameToHandleAt(fd, name, 0)) }

// handleOf encodes a kernel's handle: its type and its bytes. An NFS client's handle contains the
// server's, which has the inode's generation number in addition to the inode number.
func handleOf(h unix.FileHandle, _ int, err error) (Handle, error) {
	if err != nil {
		return "", err
	}
	return Handle(fmt.Sprintf("%d:%s", h.Type(), h.Bytes())), nil
}

func fileSystem(fd int) (FileSystem, error) {
	var s unix.Statfs_t
	if err := unix.Fstatfs(fd, &s); err != nil {
		return FileSystem{}, err
	}
	kind := uint32(s.Type) //nolint:gosec // the magic numbers have 32 bits; the field's width differs by platform
	local, nfs := isLocal(kind), kind == unix.NFS_SUPER_MAGIC
	return FileSystem{Type: fmt.Sprintf("%08x", kind), Local: local, NFS: nfs, ManyClocks: !local && !nfs, Ordered: isOrdered(kind)}, nil
}

// isLocal recognises file systems that only one kernel mounts. Any other type counts as shared:
// overlayfs, for example, may be on top of NFS.
func isLocal(kind uint32) bool {
	switch kind {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC,
		unix.TMPFS_MAGIC, unix.RAMFS_MAGIC:
		return true
	}
	return false
}

// isOrdered recognises file systems that complete the write of a page (which Flush waits for) only when
// the file's size and location are in the journal, before any later rename. Btrfs and F2FS do not
// guarantee that; file systems in memory lose everything in any case.
func isOrdered(kind uint32) bool {
	switch kind {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.RAMFS_MAGIC:
		return true
	}
	return false
}

func flush(fd int) error {
	const begunAndWritten = unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER
	return unix.SyncFileRange(fd, 0, 0, begunAndWritten)
}
