package command

import (
	"os"

	"github.com/multilock/go/internal/procfs"
)

// isAncestor reports whether a process of this pid namespace is our parent or another ancestor. A process
// with several threads counts only if threads is set.
func isAncestor(pid int, threads bool) bool {
	for at := os.Getppid(); at > 0; {
		stat, err := procfs.Proc.Stat(at)
		if err != nil {
			return false
		}
		if at == pid {
			return threads || stat.Threads == 1
		}
		at = stat.Parent
	}
	return false
}
