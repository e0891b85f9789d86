//go:build windows

package command

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/windows"

	"github.com/multilock/go/multilock/source"
)

// ownSession detaches a keeper from its caller's console.
func ownSession() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.DETACHED_PROCESS | windows.CREATE_NEW_PROCESS_GROUP}
}

const pipeSize = 64 << 10

// closedOutput cannot detect a closed handle here: a write to it fails.
func closedOutput(*os.File) bool { return false }

// keepDescriptors does nothing: handles are inherited only if they are passed on.
func keepDescriptors() {}

// outputPipe returns a pipe whose reads accept deadlines, unlike os.Pipe's here. It is a named pipe with an
// unguessable name, and one end for each direction.
func outputPipe() (reader, writer *os.File, err error) {
	name := `\\.\pipe\multilock-` + source.NewToken()
	name16, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return nil, nil, err
	}
	in, err := windows.CreateNamedPipe(name16, windows.PIPE_ACCESS_INBOUND|windows.FILE_FLAG_OVERLAPPED|windows.FILE_FLAG_FIRST_PIPE_INSTANCE,
		windows.PIPE_TYPE_BYTE|windows.PIPE_REJECT_REMOTE_CLIENTS, 1, pipeSize, pipeSize, 0, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("make the reading end: %w", err)
	}
	out, err := windows.CreateFile(name16, windows.GENERIC_WRITE, 0, nil, windows.OPEN_EXISTING, windows.FILE_ATTRIBUTE_NORMAL, 0)
	if err != nil {
		_ = windows.CloseHandle(in)
		return nil, nil, fmt.Errorf("make the writing end: %w", err)
	}
	return os.NewFile(uintptr(in), name), os.NewFile(uintptr(out), name), nil
}

// readPatience limits a read of what is already in a pipe.
const readPatience = 20 * time.Millisecond

// readNow reads what is in a pipe without waiting for more; 0 if there is nothing.
func readNow(pipe *os.File, buffer []byte) int {
	if pipe.SetReadDeadline(time.Now().Add(readPatience)) != nil {
		return 0
	}
	n, _ := pipe.Read(buffer) // an error counts as the end
	return n
}

// longestCommand is slightly less than the 8191 characters that cmd.exe accepts, including its own options.
func longestCommand() int { return 8100 }

// quotable reports whether a value can be quoted for cmd.exe, which interprets some characters even within
// quotes.
func quotable(value string) bool { return !strings.ContainsAny(value, "\"%\r\n\x00") }

// shellWord quotes a value for cmd.exe, and for programs that parse arguments in the usual way: for them a
// backslash before a quote escapes that quote.
func shellWord(value string) string {
	if isPlain(value) {
		return value
	}
	slashes := len(value) - len(strings.TrimRight(value, `\`))
	return `"` + value + strings.Repeat(`\`, slashes) + `"`
}

// forbidden escapes the characters that a file name cannot contain.
var forbidden = strings.NewReplacer("%", "%25", "/", "%2F", "\x00", "%00", `\`, "%5C", ":", "%3A", "*", "%2A", "?", "%3F", `"`, "%22", "<", "%3C", ">", "%3E", "|", "%7C")
