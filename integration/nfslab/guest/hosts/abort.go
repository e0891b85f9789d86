//go:build linux

package hosts

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// AbortProgram is the name of Abort's program on the PATH.
const AbortProgram = "lab-abort"

// Abort runs the command line "lab-abort NAMESPACE DIR...": it makes all pending requests fail on the NFS
// mounts DIR in the mount namespace that the file NAMESPACE refers to. A forced unmount does that, whether
// or not the unmount itself succeeds. umount(8) does not work here: it needs /proc, which is empty once the
// first process of its PID namespace is exiting.
func Abort(args []string) int {
	if len(args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: lab-abort NAMESPACE DIR...")
		return 2
	}
	runtime.LockOSThread()
	if err := abort(args[1], args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "lab-abort:", err)
		return 1
	}
	return 0
}

func abort(namespace string, dirs []string) error {
	fd, err := unix.Open(namespace, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", namespace, err)
	}
	defer unix.Close(fd)
	if err := enterMounts(fd); err != nil {
		return fmt.Errorf("%s: %w", namespace, err)
	}
	for _, dir := range dirs {
		if err := abortMount(dir); err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
	}
	return nil
}

// abortMount keeps the mount in use while it aborts the requests. Otherwise, if the last process leaves the
// mount at that moment, it is really unmounted, and the kernel tries for six minutes to notify a server
// that cannot be reached. Opening with O_PATH sends no request to the server.
func abortMount(dir string) error {
	held, err := unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(held)
	// EBUSY: in use, at least by this process. EINVAL: no longer mounted.
	err = unix.Unmount(dir, unix.MNT_FORCE)
	if err == nil || errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EINVAL) {
		return nil
	}
	return err
}

// enterMounts moves the calling thread into a mount namespace. A thread that shares its root directory with
// other threads may not enter one.
func enterMounts(namespace int) error {
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("unshare root directory: %w", err)
	}
	return unix.Setns(namespace, unix.CLONE_NEWNS)
}
