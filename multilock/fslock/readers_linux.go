package fslock

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/multilock/go/internal/procfs"
	"github.com/multilock/go/multilock/source"
)

// readersOf lists the processes of this host that have a file of that name open, as far as this user may
// see it. A name alone is enough, because NFS clients never reuse the names of removed files.
func readersOf(name string) (readers []string) {
	pids, _ := procfs.Proc.PIDs() // if /proc cannot be listed, there are no names to report
	for _, pid := range pids {
		if hasOpen(pid, name) {
			readers = append(readers, fmt.Sprintf("process %d%s", pid, commandOf(pid)))
		}
	}
	return readers
}

func hasOpen(pid int, name string) bool {
	dir := filepath.Join(string(procfs.Proc), strconv.Itoa(pid), "fd")
	files, _ := os.ReadDir(dir) // it fails for another user's process, and for one that has ended
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
