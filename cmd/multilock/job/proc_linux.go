package job

import (
	"bytes"
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

var errMalformed = errors.New("malformed stat line")

// stat is what we need of /proc/PID/stat (proc_pid_stat(5)).
type stat struct {
	pid     int
	state   byte   // field 3
	parent  int    // field 4
	group   int    // field 5
	threads int    // field 20
	start   uint64 // field 22, clock ticks since boot
}

// dead reports a zombie. The main thread of a process looks like one too after
// it has ended by itself, while other threads go on.
func (s stat) dead() bool {
	return (s.state == 'Z' || s.state == 'X') && s.threads <= 1
}

var errForeignProc = errors.New("/proc does not show the processes of our pid namespace")

// listProcesses returns all processes that can be seen. One that starts during
// the listing may be missing. A /proc that was mounted in another pid namespace
// is an error: the numbers in it mean other processes to kill(2).
func listProcesses() ([]stat, error) {
	self, err := os.Readlink("/proc/self")
	if err != nil || self != strconv.Itoa(os.Getpid()) {
		return nil, errForeignProc
	}
	proc, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer proc.Close()
	names, err := proc.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	processes := make([]stat, 0, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if s, err := readStat(pid); err == nil {
			processes = append(processes, s)
		}
	}
	return processes, nil
}

// usualProc is more than most files have that are read here.
const usualProc = 4096

// readProc reads a file of /proc. os.ReadFile would offer it to the runtime's poller
// first, and read it in small pieces: twelve system calls where these are five.
func readProc(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	var content bytes.Buffer
	content.Grow(usualProc)
	_, err = content.ReadFrom(f)
	return content.Bytes(), err
}

func readStat(pid int) (stat, error) {
	line, err := readProc("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}, err
	}
	s, err := parseStat(line)
	s.pid = pid
	return s, err
}

// parseStat takes the line apart behind the name, which stands in parentheses
// and may hold anything, parentheses included.
func parseStat(line []byte) (s stat, err error) {
	fields := bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:])
	const first = 3 // the number of fields[0]
	if len(fields) <= 22-first {
		return s, errMalformed
	}
	number := func(field int) int {
		n, bad := strconv.Atoi(string(fields[field-first]))
		err = errors.Join(err, bad)
		return n
	}
	s.state = fields[0][0]
	s.parent, s.group, s.threads = number(4), number(5), number(20)
	start, bad := strconv.ParseUint(string(fields[22-first]), 10, 64)
	s.start = start
	return s, errors.Join(err, bad)
}
