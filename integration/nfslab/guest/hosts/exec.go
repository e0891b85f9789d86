//go:build linux

package hosts

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// Exec becomes the command in args, after arranging to be killed with its parent. It returns, with an exit
// code, only if that fails. os/exec can set the death signal too, but considers a parent in another PID
// namespace dead.
func Exec(args []string) int {
	runtime.LockOSThread() // the death signal belongs to a thread
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, "on: death signal:", err)
		return 125
	}
	// A parent outside of this PID namespace has the number 0 in it. If the parent has died, the number is
	// that of init.
	if unix.Getppid() != 0 {
		return 125
	}
	path, err := exec.LookPath(args[1])
	if err == nil {
		err = unix.Exec(path, args[1:], os.Environ())
	}
	fmt.Fprintf(os.Stderr, "on: %s: %v\n", args[1], err)
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return 127
	}
	return 126
}
