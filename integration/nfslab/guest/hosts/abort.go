//go:build linux

package hosts

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// AbortProgram is the name under which Abort is found on the PATH.
const AbortProgram = "lab-abort"

// Abort runs the command line "lab-abort NAMESPACE DIR...": it fails all requests under way on the NFS mounts DIR of the mount
// namespace that NAMESPACE is a file of. Forcing an unmount does that, whether or not the unmount then works. umount(8) cannot be
// used: it wants to read /proc, which shows nothing once the first process of its pid namespace is dying.
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

// abortMount holds the mount while it asks for its end. Otherwise, if the last process leaves it just then, it really ends, and the
// kernel says good-bye to a server that cannot be reached, for six minutes. A descriptor of this kind asks the server nothing.
func abortMount(dir string) error {
	held, err := unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(held)
	// EBUSY: in use, by us at least. EINVAL: no mount any more.
	err = unix.Unmount(dir, unix.MNT_FORCE)
	if err == nil || errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EINVAL) {
		return nil
	}
	return err
}

// enterMounts moves the calling thread into a mount namespace. A thread that shares its root directory with others may not.
func enterMounts(namespace int) error {
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("unshare root directory: %w", err)
	}
	return unix.Setns(namespace, unix.CLONE_NEWNS)
}
