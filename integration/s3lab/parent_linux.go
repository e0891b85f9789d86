package s3lab

import "syscall"

// dieWithParent makes the server end with the test, even if the test is killed.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
