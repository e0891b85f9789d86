package etcdlab

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// stepClock steps the wall clock of one process, but neither the machine's clock nor the process's
// monotonic clock. Go reads the time from a function that the kernel maps into each process. stepClock
// overwrites it with one that makes the system call and adds an offset. (Go does not call the C
// library, so replacing its function has no effect, and time namespaces do not virtualize the wall
// clock.) The process is stopped for this, with none of its threads inside the function.
func stepClock(process *os.Process, beside time.Duration) error {
	code := []byte{
		0xb8, 228, 0, 0, 0, 0x0f, 0x05, // mov eax, clock_gettime; syscall
		0x85, 0xff, 0x75, 13, // test edi, edi; jne to the end: not the wall clock
		0x48, 0xba, // movabs rdx, the seconds
	}
	code = binary.LittleEndian.AppendUint64(code, uint64(beside/time.Second)) //nolint:gosec // negative ones wrap around, as they should
	code = append(code, 0x48, 0x01, 0x16, 0xc3)                               // add [rsi], rdx; ret
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", process.Pid), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer memory.Close()
	from, size, err := timeFunction(process.Pid, memory)
	if err != nil {
		return err
	}
	if size < len(code) {
		return errors.New("the kernel's function is too short")
	}
	for range 1000 {
		if err := process.Signal(syscall.SIGSTOP); err != nil {
			return err
		}
		still, err := standsOutside(process.Pid, from, from+int64(size))
		if still && err == nil {
			_, err = memory.WriteAt(code, from)
		}
		if err := errors.Join(err, process.Signal(syscall.SIGCONT)); err != nil || still {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	return errors.New("the process does not stand still")
}

// timeFunction finds the kernel's time function in a process.
func timeFunction(pid int, memory *os.File) (at int64, size int, err error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return 0, 0, err
	}
	var from, to int64
	for line := range strings.SplitSeq(string(maps), "\n") {
		if strings.HasSuffix(line, "[vdso]") {
			if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err != nil {
				return 0, 0, err
			}
		}
	}
	image := make([]byte, to-from)
	if _, err := memory.ReadAt(image, from); err != nil {
		return 0, 0, err
	}
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return 0, 0, err
	}
	symbols, err := file.DynamicSymbols()
	for _, s := range symbols {
		if s.Name == "__vdso_clock_gettime" {
			return from + int64(s.Value), int(s.Size), nil //nolint:gosec // both are small
		}
	}
	return 0, 0, errors.Join(err, errors.New("the kernel maps no function for the time"))
}

// standsOutside reports whether all threads of a process are stopped outside an address range. (The
// syscall file has the address of a thread in a system call, too.)
func standsOutside(pid int, from, to int64) (bool, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", pid))
	for _, thread := range threads {
		text, failed := os.ReadFile(thread)
		if failed != nil {
			return false, failed
		}
		words := strings.Fields(string(text)) // call number, perhaps arguments, stack pointer, program counter
		var place int64
		if _, failed := fmt.Sscanf(words[len(words)-1], "0x%x", &place); failed != nil || from <= place && place < to {
			return false, nil //nolint:nilerr // it runs
		}
	}
	return len(threads) > 0, err
}
