package fslock

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/multilock/go/internal/procfs"
	"github.com/multilock/go/multilock/source"
)

// readersOf names the processes of this host that have a file of that name open, as far
// as this user may see that. The names that NFS clients give to files that were removed
// come only once.
func readersOf(name string) (readers []string) {
	pids, _ := procfs.Proc.PIDs() // where they cannot be listed there is nobody to be named
	for _, pid := range pids {
		if hasOpen(pid, name) {
			readers = append(readers, fmt.Sprintf("process %d%s", pid, commandOf(pid)))
		}
	}
	return readers
}

func hasOpen(pid int, name string) bool {
	dir := filepath.Join(string(procfs.Proc), strconv.Itoa(pid), "fd")
	files, _ := os.ReadDir(dir) // of somebody else, or it has ended
	for _, file := range files {
		if target, err := os.Readlink(filepath.Join(dir, file.Name())); err == nil && filepath.Base(target) == name {
			return true
		}
	}
	return false
}

func commandOf(pid int) string {
	found, err := procfs.Proc.Stat(pid)
	if err != nil {
		return ""
	}
	return " (" + source.Printable(found.Name) + ")"
}
