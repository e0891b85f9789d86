package job

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// withoutTTOU runs a call on the terminal with SIGTTOU blocked in this thread
// alone. Ignoring the signal would do for the call, but a job started at the
// same moment would inherit that. The mask is not inherited: Go gives children
// the mask that the thread had when it was new.
func withoutTTOU(call func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var ttou, before unix.Sigset_t
	ttou.Val[0] = 1 << (unix.SIGTTOU - 1)
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &ttou, &before); err != nil {
		return err
	}
	defer unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil)
	return call()
}
