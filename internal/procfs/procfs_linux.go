// Package procfs reads what Linux tells about processes in /proc (proc(5)).
package procfs

import (
	"bytes"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Dir is where a proc file system is mounted.
type Dir string

// Proc is where it always is.
const Proc Dir = "/proc"

// PIDs lists the processes that can be seen. Those that start during the listing may
// be missing.
func (d Dir) PIDs() ([]int, error) {
	dir, err := os.Open(string(d))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	pids := make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, err
}

// Read reads a file that tells about a process; 0 stands for the calling one, which is
// right whatever pid namespace this belongs to.
func (d Dir) Read(pid int, name string) ([]byte, error) {
	directory := "self"
	if pid != 0 {
		directory = strconv.Itoa(pid)
	}
	return Read(filepath.Join(string(d), directory, name))
}

// Ours reports whether the numbers here are those that kill(2) takes. They are not when
// this was mounted in an outer pid namespace, as after unshare --pid without
// --mount-proc: then its entries are other processes. The line NSpid
// (proc_pid_status(5), since 4.1) holds one number for the namespace of the mount and
// one more for every namespace further in.
func (d Dir) Ours() bool {
	if numbers, known := d.OwnStatus("NSpid"); known {
		return len(strings.Fields(numbers)) == 1
	}
	link, _ := os.Readlink(filepath.Join(string(d), "self"))
	return link == strconv.Itoa(os.Getpid())
}

// OwnStatus returns a value of the calling process's file status, if it has it.
func (d Dir) OwnStatus(name string) (value string, known bool) {
	status, _ := d.Read(0, "status") // without it nothing is known
	for line := range bytes.Lines(status) {
		if key, value, _ := strings.Cut(string(line), ":"); key == name {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}

// HasEntry reports whether an environment, as the file environ holds it, has an entry.
func HasEntry(environ []byte, entry string) bool {
	for one := range bytes.SplitSeq(environ, []byte{0}) {
		if string(one) == entry {
			return true
		}
	}
	return false
}

// Values are those of a variable in an environment, as the file environ holds it: it may be
// there more than once.
func Values(environ []byte, name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for one := range bytes.SplitSeq(environ, []byte{0}) {
			if value, found := strings.CutPrefix(string(one), name+"="); found && !yield(value) {
				return
			}
		}
	}
}

// usuallySmall is more than what is read here has, unless the user is in hundreds
// of groups, which /proc/self/status lists.
const usuallySmall = 4096

// Read reads a small file of the kernel's or of the system's setup. It takes
// three system calls where os.ReadFile takes ten, for that one offers the file to
// the runtime's poller first: every short job pays for who its runner is.
func Read(path string) ([]byte, error) {
	fd, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	content := make([]byte, usuallySmall)
	for read := 0; ; {
		n, err := readOnce(fd, content[read:])
		if err != nil {
			return nil, err
		}
		if read += n; read < len(content) {
			return content[:read], nil
		}
		content = append(content, make([]byte, len(content))...)
	}
}

func openFile(path string) (int, error) {
	for {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// readOnce fills buf or meets the end of the file: the kernel makes up such a
// file as a whole, and copies as much of it as there is room for.
func readOnce(fd int, buf []byte) (int, error) {
	for {
		n, err := unix.Read(fd, buf)
		if err != unix.EINTR {
			return n, err
		}
	}
}
