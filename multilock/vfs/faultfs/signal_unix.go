//go:build linux || darwin || freebsd

package faultfs

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// CrashAt kills the process with SIGKILL at operation n: nothing deferred runs, and nothing is flushed.
// Data that the process wrote survives, because the machine does not crash.
func CrashAt(n int, phase Phase) Injector {
	return at(n, phase, func() error {
		_ = unix.Kill(os.Getpid(), unix.SIGKILL)
		select {} // until it arrives
	})
}

// StopAt stops the process with SIGSTOP at operation n. After a SIGCONT the operation continues
// normally.
func StopAt(n int, phase Phase) Injector { return at(n, phase, stop) }

func errorName(number syscall.Errno) string {
	if name := unix.ErrnoName(number); name != "" {
		return name
	}
	return number.Error()
}
