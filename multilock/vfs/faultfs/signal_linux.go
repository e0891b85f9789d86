package faultfs

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// stop sends the signal to this thread. If it were sent to the process, another thread could take it,
// and this one would run on for a moment.
func stop() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return unix.Tgkill(os.Getpid(), unix.Gettid(), unix.SIGSTOP)
}
