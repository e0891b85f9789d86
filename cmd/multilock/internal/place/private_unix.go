//go:build unix

package place

import (
	"fmt"
	"io/fs"
	"syscall"
)

// checkPrivate rejects a file with a secret that other users may read or write. A file of root may be
// readable for its group, as libpq allows for keys.
func checkPrivate(info fs.FileInfo) error {
	allowed := fs.FileMode(0o700)
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid == 0 {
		allowed |= 0o040
	}
	if others := info.Mode().Perm() &^ allowed; others != 0 {
		return fmt.Errorf("others may read or write it (mode %04o): chmod 600, or 640 if it belongs to root", info.Mode().Perm())
	}
	return nil
}
