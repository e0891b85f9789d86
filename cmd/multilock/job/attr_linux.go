package job

import "syscall"

// sysProcAttr asks for a group of its own and for death along with us. Go closes
// the race of a parent that dies before the child's prctl by comparing getppid
// with what it was before the fork (forkAndExecInChild1 in syscall/exec_linux.go).
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
