//go:build unix

package command

import (
	"os"
	"strings"
	"syscall"
	"time"
)

// ownSession keeps a keeper out of reach of its caller's terminal.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

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
