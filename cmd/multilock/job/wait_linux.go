package job

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// next waits until the command has ended or stopped. It looks first and reaps
// after, under the lock of the tree: as long as the command is a zombie the
// kernel gives its number to nobody, so that no signal of ours can hit a
// stranger between the reaping and the moment everybody here knows of it.
func (j *Job) next() (syscall.WaitStatus, syscall.Rusage) {
	for {
		err := unix.Waitid(unix.P_PID, j.pid, nil, unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT, nil)
		if err == unix.EINTR {
			continue
		}
		if status, usage, ok := j.collect(); ok {
			return status, usage
		}
	}
}

// collect returns false when what was to be seen is over: a stopped command has
// been continued meanwhile.
func (j *Job) collect() (status syscall.WaitStatus, usage syscall.Rusage, ok bool) {
	j.tree.mu.Lock()
	defer j.tree.mu.Unlock()
	pid, err := syscall.Wait4(j.pid, &status, syscall.WUNTRACED|syscall.WNOHANG, &usage)
	switch {
	case err == syscall.EINTR, err == nil && pid == 0:
		return 0, usage, false
	case err != nil:
		status = unknownStatus
	}
	if !status.Stopped() {
		j.tree.reaped()
	}
	return status, usage, true
}
