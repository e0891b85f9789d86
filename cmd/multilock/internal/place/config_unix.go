//go:build unix

package place

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// isOwn says that a directory belongs to who we are, or that this cannot be told.
func isOwn(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil {
		return true
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(stat.Uid) == os.Geteuid()
}

// checkConfigOwner refuses a file that is somebody else's, or that somebody else may write to.
func checkConfigOwner(info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	self := os.Geteuid()
	switch {
	case stat.Uid != 0 && int(stat.Uid) != self:
		return fmt.Errorf("it belongs to user %d, whom this user (%d) does not believe", stat.Uid, self)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("others may write to it (mode %#o; chmod go-w)", info.Mode().Perm())
	}
	return nil
}
