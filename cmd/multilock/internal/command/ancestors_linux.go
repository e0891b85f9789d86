package command

import (
	"os"

	"github.com/multilock/go/internal/procfs"
)

// isAncestor says whether a process of this pid namespace is our parent, or an ancestor of it.
func isAncestor(pid int) bool {
	for at := os.Getppid(); at > 0; {
		if at == pid {
			return true
		}
		stat, err := procfs.Proc.Stat(at)
		if err != nil {
			return false
		}
		at = stat.Parent
	}
	return false
}
