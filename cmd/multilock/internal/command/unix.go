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

// ownSession keeps a keeper out of reach of its caller's terminal.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// closedOutput reports whether the caller has closed a standard descriptor. Go's runtime
// opens the null device in its place, for reading and writing, which no shell's redirection
// does.
func closedOutput(f *os.File) bool {
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err != nil {
		return true
	}
	null, failed := os.Stat(os.DevNull)
	info, err := f.Stat()
	return failed == nil && err == nil && flags&unix.O_ACCMODE == unix.O_RDWR && os.SameFile(null, info)
}

// keepDescriptors keeps the caller's descriptors from programs that are started from now
// on: a keeper that has them would hold the script's flock, or the end of a pipe.
func keepDescriptors() {
	const usual = 1024 // where the system does not list them
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

// outputPipe is a pipe whose reader need not wait.
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

// longestCommand is how many bytes Linux passes as one argument: MAX_ARG_STRLEN, which is 32 pages,
// less the NUL at its end. Other systems limit only all arguments together, to more than that.
func longestCommand() int { return 32*os.Getpagesize() - 1 }

// quotable says that a value can be quoted for the shell.
func quotable(string) bool { return true }

// shellWord quotes a value for every shell of POSIX, whatever is in it.
func shellWord(value string) string {
	if isPlain(value) {
		return value
	}
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}

// forbidden is what no file's name can have, and how it is written in one.
var forbidden = strings.NewReplacer("%", "%25", "/", "%2F", "\x00", "%00")
