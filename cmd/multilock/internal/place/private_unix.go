//go:build unix

package place

import (
	"fmt"
	"io/fs"
	"syscall"
)

// checkPrivate refuses a file with a secret that others may read or write. The group may read
// what root gives it, as libpq has it for keys.
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
