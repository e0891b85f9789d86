//go:build unix

package cooklock

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// DefaultNotes returns a directory of this user on this host that is removed at a reboot, where the
// system has one: $XDG_RUNTIME_DIR if that belongs to this user, /run for root, or the directory of
// temporary files, where another user may take the name first.
func DefaultNotes() string {
	return defaultNotes("/run")
}

func defaultNotes(run string) string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) && isPrivate(dir) {
		return filepath.Join(dir, "multilock")
	}
	if os.Geteuid() == 0 && isPrivate(run) {
		return filepath.Join(run, "multilock")
	}
	return filepath.Join(os.TempDir(), "multilock-"+strconv.Itoa(os.Geteuid()))
}

// isPrivate reports whether only this user and root can create entries in a directory.
func isPrivate(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir() && info.Mode().Perm()&0o022 == 0 && ownedBySelf(info)
}

func ownedBySelf(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// timeNamespace names the time namespace of this process; "" where the system has none.
func timeNamespace() string {
	name, err := os.Readlink("/proc/self/ns/time")
	if err != nil {
		return ""
	}
	return name
}
