package job

import (
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/multilock/go/internal/procfs"
)

// sysProcAttr requests a process group, and death along with the runner. Go closes the race of a
// parent that dies before the child's prctl by comparing getppid with its value before the fork
// (forkAndExecInChild1 in syscall/exec_linux.go).
func (j *Job) sysProcAttr() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if j.pidfd = -1; j.control == nil { // job control must see stops as well
		attr.PidFD = &j.pidfd // stays -1 before Linux 5.2
	}
	return attr
}

// next waits until the command has ended or stopped. It first waits without reaping, and reaps under the
// lock of the tree: while the command is a zombie the kernel reserves its number, so no signal can hit
// another process before the runner's state is updated.
func (j *Job) next() syscall.WaitStatus {
	if status, ok := j.awaitEnd(); ok {
		return status
	}
	for {
		err := unix.Waitid(unix.P_PID, j.pid, nil, unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT, nil)
		if err == unix.EINTR {
			continue
		}
		if status, ok := j.collect(); ok {
			return status
		}
	}
}

// awaitEnd waits with the runtime's poller, which costs less than a blocked thread for each job. ok
// is false if that is impossible, or if a debugger must see the end first.
func (j *Job) awaitEnd() (status syscall.WaitStatus, ok bool) {
	if j.pidfd < 0 {
		return 0, false
	}
	_ = unix.SetNonblock(j.pidfd, true) // needed for polling; an error shows there
	file := os.NewFile(uintptr(j.pidfd), "pidfd")
	j.pidfd = -1
	defer file.Close()
	conn, err := file.SyscallConn()
	if err != nil {
		return 0, false
	}
	looks := 0
	_ = conn.Read(func(uintptr) bool {
		status, ok = j.collect()
		ok = ok && !status.Stopped() // stops were not requested
		looks++
		return ok || looks > 1
	})
	return status, ok
}

// collect returns false if a stopped command has been continued in the meantime.
func (j *Job) collect() (status syscall.WaitStatus, ok bool) {
	j.tree.mu.Lock()
	defer j.tree.mu.Unlock()
	pid, err := syscall.Wait4(j.pid, &status, syscall.WUNTRACED|syscall.WNOHANG, nil)
	switch {
	case err == syscall.EINTR, err == nil && pid == 0:
		return 0, false
	case err != nil:
		status = unknownStatus
	}
	if !status.Stopped() {
		j.tree.reaped()
	}
	return status, true
}

// ownExecutable returns a path that is valid even if the file was replaced since the start.
func ownExecutable() (string, error) { return "/proc/self/exe", nil }

// closeInherited closes the descriptors that the runner's parent left open for its children, such
// as pipes. The Go runtime's own are closed on exec.
func closeInherited() {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, entry := range entries {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil || fd < 3 {
			continue
		}
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd)
		}
	}
}

// suspendPeers sends SIGTSTP to the other members of the runner's process group, one by one: the
// runner would catch a signal to the whole group and pass it on to the job after the job was
// continued.
func suspendPeers() {
	self, group := os.Getpid(), unix.Getpgrp()
	processes, _ := listProcesses() // if they cannot be listed, only the runner stops
	for _, p := range processes {
		if p.Group == group && p.PID != self {
			_ = unix.Kill(p.PID, unix.SIGTSTP) // gone, or not permitted
		}
	}
}

// withoutTTOU runs a call on the terminal with SIGTTOU blocked only in this thread. If it were ignored
// instead, a job started at the same moment would inherit that. The mask is not inherited: Go gives
// children the mask that the thread had when it was created.
func withoutTTOU(call func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var ttou, before unix.Sigset_t
	ttou.Val[0] = 1 << (unix.SIGTTOU - 1)
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &ttou, &before); err != nil {
		return err
	}
	defer unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil)
	return call()
}

func parentOf(pid int) (int, error) {
	p, err := procfs.Proc.Stat(pid)
	return p.Parent, err
}

// ignored reports whether the runner ignores a signal now. signal.Ignored only covers signals that
// were ignored through package signal, and SIGHUP and SIGINT.
func ignored(sig syscall.Signal) bool {
	value, _ := procfs.Proc.OwnStatus("SigIgn")
	mask, err := strconv.ParseUint(value, 16, 64)
	return err == nil && mask&(1<<(uint(sig)-1)) != 0
}

// Reach describes, for people, which processes of a job end with it on this system, and when.
const Reach = "a job is killed with all its processes, also if they left its process group, and if run itself is killed"
