package procfs

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// ForgetEnviron overwrites the values of variables in the environment with which this
// process was started. It is what others see in /proc/PID/environ; the Go runtime has a
// copy, from which os.Getenv answers as before.
//
// It goes through the file mem, because nothing but pointers leads to that memory within
// a program. The error is nil where nobody else can see it: of a process that is not
// dumpable the kernel tells no addresses.
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

// environ is where the environment lies with which this process was started: fields 50
// and 51 of stat.
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
