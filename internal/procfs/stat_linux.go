package procfs

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// errMalformed means that a stat file does not have the format of proc_pid_stat(5).
var errMalformed = errors.New("malformed stat line")

// Stat has the used fields of a process's stat file.
type Stat struct {
	PID     int
	Name    string // field 2, at most 64 bytes, any bytes but NUL
	State   byte   // field 3, of the main thread
	Parent  int    // field 4
	Group   int    // field 5; -1 for a process that is being reaped
	Kernel  bool   // field 9: it is a kernel thread
	Threads int    // field 20
	Start   uint64 // field 22, clock ticks since boot
}

// kernelThread is PF_KTHREAD of include/linux/sched.h, which has never changed.
const kernelThread = 0x00200000

// Ended reports whether the process is a zombie or exiting. A main thread that ended by itself while other
// threads run looks the same, and does not count.
func (s Stat) Ended() bool {
	return bytes.IndexByte([]byte("ZXx"), s.State) >= 0 && s.Threads <= 1
}

// Stat returns the state of one process. See Read for the errors.
func (d Dir) Stat(pid int) (Stat, error) {
	line, err := d.Read(pid, "stat")
	if err != nil {
		return Stat{}, err
	}
	s, err := parseStat(line)
	s.PID = pid
	return s, err
}

// Children returns the children of all threads of a process, if the kernel lists them
// (CONFIG_PROC_CHILDREN).
func (d Dir) Children(pid int) (children []int) {
	tasks, _ := os.ReadDir(filepath.Join(string(d), strconv.Itoa(pid), "task")) // the process may have ended
	for _, task := range tasks {
		list, _ := d.Read(pid, "task/"+task.Name()+"/children")
		for field := range bytes.FieldsSeq(list) {
			if child, err := strconv.Atoi(string(field)); err == nil {
				children = append(children, child)
			}
		}
	}
	return children
}

// parseStat parses a stat line. The name is in parentheses and is not escaped: it may contain spaces,
// newlines and parentheses. Only the last closing parenthesis certainly ends it, because only numbers
// follow.
func parseStat(line []byte) (Stat, error) {
	first, last := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if first < 0 || last < first {
		return Stat{}, errMalformed
	}
	fields := bytes.Split(line[last+1:], []byte(" ")) // the first one is empty
	if len(fields) <= 22-2 || len(fields[3-2]) != 1 {
		return Stat{}, errMalformed
	}
	var bad error
	number := func(field int) int64 {
		n, err := strconv.ParseInt(string(fields[field-2]), 10, 64)
		bad = errors.Join(bad, err)
		return n
	}
	start, err := strconv.ParseUint(string(fields[22-2]), 10, 64)
	s := Stat{
		Name: string(line[first+1 : last]), State: fields[3-2][0], Parent: int(number(4)), Group: int(number(5)),
		Kernel: number(9)&kernelThread != 0, Threads: int(number(20)), Start: start,
	}
	if bad != nil || err != nil {
		return Stat{}, errMalformed
	}
	return s, nil
}

// Vanished reports whether a process no longer exists: opening a file returns ENOENT, and reading an open
// one ESRCH.
func Vanished(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH)
}
