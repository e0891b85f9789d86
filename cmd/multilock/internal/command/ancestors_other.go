//go:build !linux

package command

import "os"

// isAncestor reports whether a process is our parent. Other ancestors are not known here.
func isAncestor(pid int, _ bool) bool { return pid == os.Getppid() }
