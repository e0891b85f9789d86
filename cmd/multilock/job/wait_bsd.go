//go:build unix && !linux

package job

import "syscall"

// next waits until the command has ended or stopped. Without a portable waitid
// it reaps before others can know; the kernels hand out process numbers in turn
// or at random from a large range, so a signal sent within that moment finds
// nobody.
func (j *Job) next() (status syscall.WaitStatus, usage syscall.Rusage) {
	for {
		_, err := syscall.Wait4(j.pid, &status, syscall.WUNTRACED, &usage)
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
		return status, usage
	}
}
