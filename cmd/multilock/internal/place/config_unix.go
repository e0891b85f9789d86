//go:build unix

package place

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// isOwn reports whether a directory belongs to the effective user, or its owner is unknown.
func isOwn(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil {
		return true
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(stat.Uid) == os.Geteuid()
}

// checkConfigOwner rejects a file that belongs to another user, or that another user may write to.
func checkConfigOwner(info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	self := os.Geteuid()
	switch {
	case stat.Uid != 0 && int(stat.Uid) != self:
		return fmt.Errorf("it belongs to user %d, which this user (%d) does not trust", stat.Uid, self)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("others may write to it (mode %#o; chmod go-w)", info.Mode().Perm())
	}
	return nil
}
