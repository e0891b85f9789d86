//go:build unix && !linux

package job

import (
	"os"

	"golang.org/x/sys/unix"
)

func ownExecutable() (string, error) { return os.Executable() }

// highestInherited bounds the search: shells hand down small numbers.
const highestInherited = 255

// closeInherited closes the descriptors that our own parent was given and left
// open for its children, which may be somebody's pipe. Those of the Go runtime
// are closed on exec; what survived our exec is not.
func closeInherited() {
	for fd := 3; fd <= highestInherited; fd++ {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd)
		}
	}
}
