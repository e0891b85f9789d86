package process

import (
	"bytes"
	"errors"
	"io/fs"
	"strconv"

	"golang.org/x/sys/unix"
)

// errMalformed means that a stat file was not what proc_pid_stat(5) describes.
var errMalformed = errors.New("malformed stat line")

// statBuffer holds a whole stat line: 51 numbers of at most 20 digits would be
// longer, but the fields up to the 22nd end well before.
type statBuffer [1024]byte

// stat is what we need of /proc/PID/stat.
type stat struct {
	name  []byte // as in field 2, at most 64 bytes, any bytes but NUL
	state byte   // field 3
	group int    // field 5; -1 for a process that is just being reaped
	// kernel marks a thread of the kernel's, in field 9
	kernel bool
	start  uint64 // field 22, clock ticks since boot
}

// kernelThread is PF_KTHREAD of include/linux/sched.h, which never changed.
const kernelThread = 0x00200000

// dead reports a zombie or a process on its way out. The state is that of the
// main thread; others may live on, see hasLiveThread.
func (s stat) dead() bool {
	return s.state == 'Z' || s.state == 'X' || s.state == 'x'
}

// parseStat takes a stat line apart. The name stands in parentheses and is not
// escaped: it may hold spaces, line feeds and parentheses, so only the last
// closing one is known to end it, because nothing but numbers follows.
func parseStat(line []byte) (stat, error) {
	first := bytes.IndexByte(line, '(')
	last := bytes.LastIndexByte(line, ')')
	if first < 0 || last < first {
		return stat{}, errMalformed
	}
	s := stat{name: line[first+1 : last]}
	if err := s.parseFields(line[last+1:]); err != nil {
		return stat{}, errMalformed
	}
	return s, nil
}

// parseFields reads what follows the name, which is field 3 and on, with one
// space before each. It cuts by hand because the iterators of package bytes
// would move the caller's buffer to the heap.
func (s *stat) parseFields(rest []byte) (err error) {
	for number := 2; len(rest) > 0; number++ {
		var field []byte
		field, rest, _ = bytes.Cut(rest, []byte(" "))
		switch number {
		case 3:
			if len(field) != 1 {
				return errMalformed
			}
			s.state = field[0]
		case 5:
			s.group, err = strconv.Atoi(string(field))
		case 9:
			var flags uint64
			flags, err = strconv.ParseUint(string(field), 10, 64)
			s.kernel = flags&kernelThread != 0
		case 22:
			s.start, err = strconv.ParseUint(string(field), 10, 64)
			return err
		}
		if err != nil {
			return err
		}
	}
	return errMalformed
}

// readStat reads the stat file of one process or thread. The name in the result
// lives in buf.
func readStat(path string, buf *statBuffer) (stat, error) {
	fd, err := openFile(path)
	if err != nil {
		return stat{}, err
	}
	defer unix.Close(fd)
	n, err := readOnce(fd, buf[:])
	if err != nil {
		return stat{}, err
	}
	return parseStat(buf[:n])
}

func statPath(pid int) string {
	return "/proc/" + strconv.Itoa(pid) + "/stat"
}

// vanished reports that there is no such process any more: opening fails with
// ENOENT, reading a file opened before with ESRCH.
func vanished(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH)
}
