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

// wallClock answers the questions of a host's processes for the time of day. The kernel has one wall clock for all hosts, so their
// calls are caught (seccomp_unotify(2)) and answered here. The machine boots without a vDSO, lest anybody ask without a call.
type wallClock struct {
	listener int
	file     string // how many seconds it is ahead of the server's; read for each answer, so that it can be stepped
}

// catchClock makes what the calling thread starts from now on ask a wallClock, if the host has one of its own. Nil: it has not.
func catchClock(host string) (*wallClock, error) {
	file := filepath.Join(hostsDir, host, "clock")
	if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	program := clockFilter()
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&filter)))
	if errno != 0 {
		return nil, fmt.Errorf("catch the questions for the time: %w", errno)
	}
	unix.CloseOnExec(int(fd))
	return &wallClock{int(fd), file}, nil
}

// clockFilter lets all calls pass but those for the time of day. Offsets are those of struct seccomp_data.
func clockFilter() []unix.SockFilter {
	const number, arch, firstArgument = 0, 4, 16
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	// equal skips so many instructions if what is loaded is value, and so many if it is not.
	equal := func(value uint32, then, otherwise uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: then, Jf: otherwise, K: value}
	}
	end := func(verdict uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: verdict}
	}
	return []unix.SockFilter{
		load(arch),
		equal(unix.AUDIT_ARCH_X86_64, 0, 7),
		load(number),
		equal(unix.SYS_GETTIMEOFDAY, 6, 0),
		equal(unix.SYS_TIME, 5, 0),
		equal(unix.SYS_CLOCK_GETTIME, 0, 3),
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
	pid, flags         uint32 // the process, by the number that this one sees
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

// serve answers until this process ends.
func (c *wallClock) serve() {
	for {
		var asked question
		if c.ioctl(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&asked)) != 0 {
			continue // interrupted, or who asked was killed
		}
		answered := c.answer(asked)
		_ = c.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&answered)) // fails if it was killed meanwhile
	}
}

func (c *wallClock) ioctl(request uintptr, argument unsafe.Pointer) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(c.listener), request, uintptr(argument))
	return errno
}

func (c *wallClock) answer(asked question) reply {
	now := c.now()
	seconds := now.Unix()
	fraction, address, value := int64(now.Nanosecond()), asked.arguments[1], int64(0)
	switch asked.number {
	case unix.SYS_GETTIMEOFDAY:
		fraction, address = fraction/int64(time.Microsecond), asked.arguments[0]
	case unix.SYS_TIME:
		address, value = 0, seconds
		if at := asked.arguments[0]; at != 0 {
			tell(asked.pid, at, []int64{seconds})
		}
	}
	if address != 0 {
		tell(asked.pid, address, []int64{seconds, fraction})
	}
	return reply{id: asked.id, value: value}
}

// tell writes words into the memory of a process. It may have been killed.
func tell(pid uint32, address uint64, words []int64) {
	size := len(words) * int(unsafe.Sizeof(words[0]))
	local := unix.Iovec{Base: (*byte)(unsafe.Pointer(&words[0]))}
	local.SetLen(size)
	_, _ = unix.ProcessVMWritev(int(pid), []unix.Iovec{local}, []unix.RemoteIovec{{Base: uintptr(address), Len: size}}, 0)
}

func (c *wallClock) now() time.Time {
	text, _ := os.ReadFile(c.file)
	ahead, _ := strconv.Atoi(strings.TrimSpace(string(text))) // the tool "host" writes nothing else
	return time.Now().Add(time.Duration(ahead) * time.Second)
}
