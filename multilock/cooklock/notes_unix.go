//go:build unix

package cooklock

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// DefaultNotes is a directory of this user's on this host that does not outlive a
// boot, where the system has one: $XDG_RUNTIME_DIR, or the directory of temporary
// files.
func DefaultNotes() string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "multilock")
	}
	return filepath.Join(os.TempDir(), "multilock-"+strconv.Itoa(os.Geteuid()))
}

func ownedBySelf(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// timeNamespace names the one of this process; "" where the system has none.
func timeNamespace() string {
	name, err := os.Readlink("/proc/self/ns/time")
	if err != nil {
		return ""
	}
	return name
}
