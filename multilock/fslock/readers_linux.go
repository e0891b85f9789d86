package fslock

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/multilock/go/multilock/source"
)

// readersOf names the processes of this host that have a file of that name open, as far
// as this user may see that. The names that NFS clients give to files that were removed
// come only once.
func readersOf(name string) (readers []string) {
	procs, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, proc := range procs {
		if pid, err := strconv.Atoi(proc.Name()); err == nil && hasOpen(proc.Name(), name) {
			readers = append(readers, fmt.Sprintf("process %d%s", pid, commandOf(proc.Name())))
		}
	}
	return readers
}

func hasOpen(pid, name string) bool {
	dir := filepath.Join("/proc", pid, "fd")
	files, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, file := range files {
		if target, err := os.Readlink(filepath.Join(dir, file.Name())); err == nil && filepath.Base(target) == name {
			return true
		}
	}
	return false
}

func commandOf(pid string) string {
	command, err := os.ReadFile(filepath.Join("/proc", pid, "comm"))
	if err != nil {
		return ""
	}
	return " (" + source.Printable(strings.TrimSpace(string(command))) + ")"
}
