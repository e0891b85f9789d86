//go:build unix

package command

import (
	"syscall"
)

// ownSession keeps a keeper out of reach of its caller's terminal.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// readNow reads from a descriptor that does not block; 0 if there is nothing.
func readNow(fd uintptr, buffer []byte) int {
	n, err := syscall.Read(int(fd), buffer) //nolint:gosec // a descriptor fits
	if err != nil {
		return 0
	}
	return n
}
