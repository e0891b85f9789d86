//go:build unix

package command

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ownSession detaches a keeper from its caller's terminal.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// closedOutput reports whether the caller has closed a standard descriptor. Go's runtime then opens the null
// device in its place, for reading and writing. Redirections of a shell do not open it for both.
func closedOutput(f *os.File) bool {
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err != nil {
		return true
	}
	null, failed := os.Stat(os.DevNull)
	info, err := f.Stat()
	return failed == nil && err == nil && flags&unix.O_ACCMODE == unix.O_RDWR && os.SameFile(null, info)
}

// keepDescriptors keeps programs that start from now on from inheriting the caller's descriptors: a keeper
// that inherits them would hold the script's flock, or keep a pipe open.
func keepDescriptors() {
	const usual = 1024 // where the system does not list the descriptors
	names, _ := os.ReadDir("/dev/fd")
	for fd := 3; fd < usual; fd++ {
		unix.CloseOnExec(fd)
	}
	for _, entry := range names {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd >= usual {
			unix.CloseOnExec(fd)
		}
	}
}

// outputPipe returns a pipe whose reads accept deadlines.
func outputPipe() (reader, writer *os.File, err error) { return os.Pipe() }

// readNow reads what is in a pipe without waiting for more; 0 if there is nothing.
func readNow(pipe *os.File, buffer []byte) (n int) {
	conn, err := pipe.SyscallConn()
	if err != nil || pipe.SetReadDeadline(time.Time{}) != nil {
		return 0
	}
	err = conn.Read(func(fd uintptr) bool {
		n, _ = syscall.Read(int(fd), buffer) //nolint:gosec // a descriptor fits
		return true
	})
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// longestCommand is the maximum length of one argument on Linux: MAX_ARG_STRLEN, which is 32 pages, less the
// final NUL. Other systems only limit all arguments together, to more than that.
func longestCommand() int { return 32*os.Getpagesize() - 1 }

// quotable reports whether a value can be quoted for the shell.
func quotable(string) bool { return true }

// shellWord quotes any value for a POSIX shell.
func shellWord(value string) string {
	if isPlain(value) {
		return value
	}
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}

// forbidden escapes the characters that a file name cannot contain.
var forbidden = strings.NewReplacer("%", "%25", "/", "%2F", "\x00", "%00")
