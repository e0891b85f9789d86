//go:build linux

package hosts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// wallClock answers the calls by which a host's processes read the time. The kernel has one wall clock for
// all hosts, so these calls are intercepted (seccomp_unotify(2)) and answered here. The machine boots
// without a vDSO, with which programs read the time without a system call.
type wallClock struct {
	listener int
	file     string // how many seconds the clock is ahead of the server's; read for each answer, so that it can be stepped
}

// catchClock makes all processes that the calling thread starts from now on read the time from a wallClock.
// It returns nil if the host has no clock of its own.
//
// The calling thread is intercepted as well, and must not read the time any more. It must be locked to its
// goroutine (runtime.LockOSThread): then Go does not start other threads from it, and serve cannot run on
// an intercepted thread and wait for itself.
func catchClock(host string) (*wallClock, error) {
	file := filepath.Join(hostsDir, host, "clock")
	if _, err := os.Stat(file); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		return nil, err
	}
	program := clockFilter()
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	// Without the second flag any signal, such as those that Go uses for preemption, makes the process
	// repeat the call.
	const flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&filter)))
	if errno != 0 {
		return nil, fmt.Errorf("catch the questions for the time: %w", errno)
	}
	return &wallClock{int(fd), file}, nil
}

// The filter is for amd64 programs, the architecture of the lab's machine.
const (
	callGettimeofday = 96
	callTime         = 201
	callClockGettime = 228
)

// clockFilter allows all calls except those that read the wall clock. The offsets are those of struct
// seccomp_data.
func clockFilter() []unix.SockFilter {
	const number, arch, firstArgument = 0, 4, 16
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	// equal skips then instructions if the loaded word equals value, and otherwise instructions if not.
	equal := func(value uint32, then, otherwise uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: then, Jf: otherwise, K: value}
	}
	end := func(assessment uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: assessment}
	}
	return []unix.SockFilter{
		load(arch),
		equal(unix.AUDIT_ARCH_X86_64, 0, 7),
		load(number),
		equal(callGettimeofday, 6, 0),
		equal(callTime, 5, 0),
		equal(callClockGettime, 0, 3),
		load(firstArgument),
		equal(unix.CLOCK_REALTIME, 2, 0),
		equal(unix.CLOCK_REALTIME_COARSE, 1, 0),
		end(unix.SECCOMP_RET_ALLOW),
		end(unix.SECCOMP_RET_USER_NOTIF),
	}
}

// question and reply are struct seccomp_notif and struct seccomp_notif_resp.
type question struct {
	id                 uint64
	pid, flags         uint32 // the caller's PID in this process's namespace
	number             int32
	arch               uint32
	instructionPointer uint64
	arguments          [6]uint64
}

type reply struct {
	id     uint64
	value  int64
	failed int32
	flags  uint32
}

// serve answers calls until this process ends, or no process can make them any more.
func (c *wallClock) serve() {
	for {
		var asked question
		switch err := c.ioctl(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&asked)); err {
		case 0:
		case unix.EINTR, unix.ENOENT:
			continue // ENOENT: the caller was killed
		default:
			fmt.Fprintln(os.Stderr, "on: the host's clock:", err)
			return
		}
		answered := c.answer(asked)
		_ = c.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&answered)) // fails if the caller was killed
	}
}

func (c *wallClock) ioctl(request uintptr, argument unsafe.Pointer) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(c.listener), request, uintptr(argument))
	return errno
}

func (c *wallClock) answer(asked question) reply {
	now := c.now()
	seconds, nanoseconds := now.Unix(), int64(now.Nanosecond())
	switch asked.number {
	case callTime:
		if at := asked.arguments[0]; at != 0 {
			return told(asked, at, seconds, seconds)
		}
		return reply{id: asked.id, value: seconds}
	case callGettimeofday:
		return told(asked, asked.arguments[0], 0, seconds, nanoseconds/int64(time.Microsecond))
	default:
		return told(asked, asked.arguments[1], 0, seconds, nanoseconds)
	}
}

// told writes words into the caller's memory, and returns the reply: value, or the error of writing.
func told(asked question, address uint64, value int64, words ...int64) reply {
	size := len(words) * int(unsafe.Sizeof(words[0]))
	local := unix.Iovec{Base: (*byte)(unsafe.Pointer(&words[0]))}
	local.SetLen(size)
	_, err := unix.ProcessVMWritev(int(asked.pid), []unix.Iovec{local}, []unix.RemoteIovec{{Base: uintptr(address), Len: size}}, 0)
	var errno unix.Errno
	if errors.As(err, &errno) {
		return reply{id: asked.id, failed: -int32(errno)}
	}
	return reply{id: asked.id, value: value}
}

func (c *wallClock) now() time.Time {
	text, _ := os.ReadFile(c.file)
	ahead, _ := strconv.Atoi(strings.TrimSpace(string(text))) // the tool "host" writes only numbers
	return time.Now().Add(time.Duration(ahead) * time.Second)
}
