package etcdlab

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stepClock has a clock of the day of this process' own, which can be stepped without touching
// the machine's. Go reads the time through a function that the kernel maps into each process. (What
// takes the place of the C library's function is not called by Go; and a time namespace has the day of
// the machine.) In its place comes one that asks the kernel, and adds what is in a page of memory. The
// clock that no step moves is left alone.
func stepClock() (step func(seconds int64), err error) {
	page, err := unix.Mmap(-1, 0, unix.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	offset := (*atomic.Int64)(unsafe.Pointer(&page[0]))
	code := []byte{
		0xb8, unix.SYS_CLOCK_GETTIME, 0, 0, 0, 0x0f, 0x05, // mov eax, clock_gettime; syscall
		0x85, 0xff, 0x75, 16, // test edi, edi; jne to the end: not the clock of the day
		0x48, 0xba, // movabs rdx, the page
	}
	code = binary.LittleEndian.AppendUint64(code, uint64(uintptr(unsafe.Pointer(offset))))
	code = append(code, 0x48, 0x8b, 0x12, 0x48, 0x01, 0x16, 0xc3) // mov rdx, [rdx]; add [rsi], rdx; ret
	return offset.Store, patchVDSO("__vdso_clock_gettime", code)
}

// patchVDSO puts code in the place of a function.
func patchVDSO(function string, code []byte) error {
	from, to, err := findVDSO()
	if err != nil {
		return err
	}
	memory, err := os.OpenFile("/proc/self/mem", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer memory.Close()
	image := make([]byte, to-from)
	if _, err := memory.ReadAt(image, from); err != nil {
		return err
	}
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return err
	}
	symbols, err := file.DynamicSymbols()
	if err != nil {
		return err
	}
	for _, s := range symbols {
		if s.Name == function && s.Size >= uint64(len(code)) {
			_, err := memory.WriteAt(code, from+int64(s.Value))
			return err
		}
	}
	return fmt.Errorf("the kernel maps no %s", function)
}

func findVDSO() (from, to int64, err error) {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.SplitSeq(string(maps), "\n") {
		if strings.HasSuffix(line, "[vdso]") {
			_, err := fmt.Sscanf(line, "%x-%x", &from, &to)
			return from, to, err
		}
	}
	return 0, 0, errors.New("the kernel maps nothing for the time")
}
