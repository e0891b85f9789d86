package shareddir

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/multilock/vfs"
)

// kindOf says what file system a directory is on. An NFS client sends a request when it is
// asked for that; the table of mounts tells as well. What has a device of its own is not NFS.
func kindOf(dir vfs.Dir, info vfs.Info) (vfs.FileSystem, error) {
	if unix.Major(info.Device) == 0 {
		if m, err := mountOf(dir); err == nil && m.isNFS() {
			return vfs.FileSystem{Type: fmt.Sprintf("%08x", unix.NFS_SUPER_MAGIC), NFS: true}, nil
		}
	}
	return dir.FileSystem()
}

// mountOf finds the mount that an open directory is on: by the mount's number, as
// neither a path nor a device number is one mount's alone.
func mountOf(dir vfs.Dir) (mount, error) {
	id, err := mountID(dir)
	if err != nil {
		return mount{}, err
	}
	table, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return mount{}, err
	}
	defer table.Close()
	found, err := mountinfo.GetMountsFromReader(table, func(m *mountinfo.Info) (skip, stop bool) { return m.ID != id, m.ID == id })
	if err != nil {
		return mount{}, err
	}
	if len(found) == 0 {
		return mount{}, errors.New("its mount is in no place that this process can see")
	}
	m := found[0]
	return mount{
		point: m.Mountpoint, kind: m.FSType, from: m.Source, life: lifeOf(dir),
		options: append(strings.Split(m.Options, ","), strings.Split(m.VFSOptions, ",")...),
	}, nil
}

// mountID reads a descriptor's mount (proc_pid_fdinfo(5)).
func mountID(dir vfs.Dir) (int, error) {
	fd, err := dir.Pin()
	if err != nil {
		return 0, err
	}
	defer dir.Unpin()
	info, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(info)) {
		if number, ok := strings.CutPrefix(line, "mnt_id:"); ok {
			return strconv.Atoi(strings.TrimSpace(number))
		}
	}
	return 0, errors.New("the kernel does not report which mount it is on")
}

// lifeOf is a number of the mount that no other one gets until the host is rebooted (statx(2),
// Linux 6.8).
func lifeOf(dir vfs.Dir) string {
	fd, err := dir.Pin()
	if err != nil {
		return ""
	}
	defer dir.Unpin()
	var s unix.Statx_t
	err = unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_MNT_ID_UNIQUE, &s)
	if err != nil || s.Mask&unix.STATX_MNT_ID_UNIQUE == 0 {
		return ""
	}
	return strconv.FormatUint(s.Mnt_id, 10)
}
