package command

import (
	"os"

	"github.com/multilock/go/internal/procfs"
)

// isAncestor says whether a process of this pid namespace is our parent, or an ancestor of it, with
// one thread, or with any number of them.
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
