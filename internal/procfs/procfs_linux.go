// Package procfs reads Linux's data about processes in /proc (proc(5)).
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

// Dir is the path of a mounted proc file system.
type Dir string

// Proc is its usual path.
const Proc Dir = "/proc"

// PIDs lists the visible processes. Processes that start during the listing may be missing.
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

// Read reads a file of a process. pid 0 is the calling process, in any pid namespace.
func (d Dir) Read(pid int, name string) ([]byte, error) {
	directory := "self"
	if pid != 0 {
		directory = strconv.Itoa(pid)
	}
	return Read(filepath.Join(string(d), directory, name))
}

// Ours reports whether the numbers in this directory are those of kill(2). They differ if it was mounted in
// an outer pid namespace, as after unshare --pid without --mount-proc: then its entries are other
// processes. The line NSpid (proc_pid_status(5), since 4.1) has one number for the namespace of the mount
// and one more for every nested namespace.
func (d Dir) Ours() bool {
	if numbers, known := d.OwnStatus("NSpid"); known {
		return len(strings.Fields(numbers)) == 1
	}
	link, _ := os.Readlink(filepath.Join(string(d), "self"))
	return link == strconv.Itoa(os.Getpid())
}

// OwnStatus returns a field of the calling process's status file, if it has the field.
func (d Dir) OwnStatus(name string) (value string, known bool) {
	status, _ := d.Read(0, "status") // unknown if unreadable
	for line := range bytes.Lines(status) {
		if key, value, _ := strings.Cut(string(line), ":"); key == name {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}

// HasEntry reports whether an environment, in the format of the file environ, has an entry.
func HasEntry(environ []byte, entry string) bool {
	for one := range bytes.SplitSeq(environ, []byte{0}) {
		if string(one) == entry {
			return true
		}
	}
	return false
}

// Values returns the values of a variable in an environment, in the format of the file environ. A variable
// may occur more than once.
func Values(environ []byte, name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for one := range bytes.SplitSeq(environ, []byte{0}) {
			if value, found := strings.CutPrefix(string(one), name+"="); found && !yield(value) {
				return
			}
		}
	}
}

// usuallySmall is more than the files read here have, unless the user is in hundreds of groups, which
// /proc/self/status lists.
const usuallySmall = 4096

// Read reads a small file of the kernel or of the system's configuration. It takes three system calls
// instead of ten with os.ReadFile, which first offers the file to the runtime's poller: every short job
// pays for the identity of its runner.
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

// readOnce fills buf or reaches the end of the file: the kernel generates such a file as a whole, and
// copies as much of it as fits.
func readOnce(fd int, buf []byte) (int, error) {
	for {
		n, err := unix.Read(fd, buf)
		if err != unix.EINTR {
			return n, err
		}
	}
}
