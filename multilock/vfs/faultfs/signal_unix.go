//go:build linux || darwin || freebsd

package faultfs

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// CrashAt kills the process at the n-th operation with SIGKILL: nothing deferred
// runs, nothing is flushed. What the process wrote survives it: the machine has
// not crashed.
func CrashAt(n int, phase Phase) Injector {
	return at(n, phase, func() error {
		_ = unix.Kill(os.Getpid(), unix.SIGKILL)
		select {} // until it arrives
	})
}

// StopAt stops the process at the n-th operation with SIGSTOP, until somebody
// sends it SIGCONT; then the operation goes on as if nothing had happened.
func StopAt(n int, phase Phase) Injector { return at(n, phase, stop) }

func errorName(number syscall.Errno) string {
	if name := unix.ErrnoName(number); name != "" {
		return name
	}
	return number.Error()
}
