package procfs

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// ForgetEnviron overwrites the values of variables in the environment with which this process was
// started, as seen by other processes in /proc/PID/environ. os.Getenv still returns them, from the Go
// runtime's copy.
//
// It writes through the file mem, because a program can otherwise only reach that memory through pointers.
// The error is nil if no other process can see the environment: the kernel does not show the addresses of
// a process that is not dumpable.
func (d Dir) ForgetEnviron(names ...string) error {
	start, end, err := d.environ()
	if err != nil || start >= end {
		return err
	}
	mem, err := os.OpenFile(filepath.Join(string(d), "self", "mem"), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer mem.Close()
	block := make([]byte, end-start)
	if _, err := mem.ReadAt(block, start); err != nil {
		return err
	}
	for entry := range bytes.SplitSeq(block, []byte{0}) {
		if name, value, _ := bytes.Cut(entry, []byte("=")); slices.Contains(names, string(name)) {
			clear(value)
		}
	}
	_, err = mem.WriteAt(block, start)
	return err
}

// environ returns where the environment with which this process was started is in memory: fields 50 and
// 51 of stat.
func (d Dir) environ() (start, end int64, err error) {
	line, err := d.Read(0, "stat")
	if err != nil {
		return 0, 0, err
	}
	fields := bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:])
	if len(fields) <= 51-3 {
		return 0, 0, errMalformed
	}
	start, err = strconv.ParseInt(string(fields[50-3]), 10, 64)
	end, bad := strconv.ParseInt(string(fields[51-3]), 10, 64)
	return start, end, errors.Join(err, bad)
}
