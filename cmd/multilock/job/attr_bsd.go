//go:build unix && !linux

package job

import "syscall"

// sysProcAttr asks for a group of its own. There is no parent death signal; the
// guard ends the command along with the rest.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
