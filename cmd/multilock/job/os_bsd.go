//go:build unix && !linux

package job

import (
	"errors"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// sysProcAttr requests a process group. These systems have no parent death signal; the guard ends the
// command along with the rest.
func (j *Job) sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// next waits until the command has ended or stopped. Without a portable waitid it reaps the command
// before the runner's state is updated. The kernels assign process numbers in sequence or at random from
// a large range, so a signal sent in that moment hits no other process.
func (j *Job) next() (status syscall.WaitStatus) {
	for {
		_, err := syscall.Wait4(j.pid, &status, syscall.WUNTRACED, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			status = unknownStatus
		}
		if !status.Stopped() {
			j.tree.mu.Lock()
			defer j.tree.mu.Unlock()
			j.tree.reaped()
		}
		return status
	}
}

func ownExecutable() (string, error) { return os.Executable() }

// highestInherited bounds the search: shells pass on small numbers.
const highestInherited = 255

// closeInherited closes the descriptors that the runner's parent left open for its children, such
// as pipes. The Go runtime's own are closed on exec.
func closeInherited() {
	for fd := 3; fd <= highestInherited; fd++ {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd)
		}
	}
}

// suspendPeers sends SIGTSTP to the other members of the runner's process group. The runner must
// not catch it too, or it would pass it on to the job after the job was continued. So it ignores the
// signal from here on, and the stop key has no effect on a job of a pipeline that was stopped once.
func suspendPeers() {
	signal.Ignore(unix.SIGTSTP)
	_ = unix.Kill(0, unix.SIGTSTP)
}

// withoutTTOU runs a call on the terminal with SIGTTOU ignored in the whole process, because Go has
// no call that changes the mask of one thread. A job started at the same moment would inherit that.
func withoutTTOU(call func() error) error {
	if !signal.Ignored(syscall.SIGTTOU) {
		signal.Ignore(syscall.SIGTTOU)
		defer signal.Reset(syscall.SIGTTOU)
	}
	return call()
}

// scan only finds the process group: kill(2) with signal 0 is the only call that these systems have in
// common.
func (t *tree) scan() []member { return t.scanGroup() }

// signal is for members outside of the group, which scan does not find on these systems.
func (m member) signal(sig syscall.Signal) error {
	return unix.Kill(m.pid, sig)
}

var errNoParent = errors.New("the parent of another process is not known here")

func parentOf(int) (int, error) { return 0, errNoParent }

func ignored(sig syscall.Signal) bool { return signal.Ignored(sig) }

// Reach describes, for people, which processes of a job end with it on this system, and when.
const Reach = "a job is killed with its process group, also if run itself is killed; on this system, a process that leaves the group is not found"
