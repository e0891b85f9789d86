package job

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// ownExecutable is right even when the file was replaced since we started.
func ownExecutable() (string, error) { return "/proc/self/exe", nil }

// closeInherited closes the descriptors that our own parent was given and left
// open for its children, which may be somebody's pipe. Those of the Go runtime
// are closed on exec; what survived our exec is not.
func closeInherited() {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, entry := range entries {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil || fd < 3 {
			continue
		}
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd)
		}
	}
}
