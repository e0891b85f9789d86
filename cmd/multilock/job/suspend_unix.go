//go:build unix

package job

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// stopped is called when the command has stopped.
func (j *Job) stopped(sig syscall.Signal) {
	if j.control != nil {
		j.control.stopped(sig)
	}
}

func (c *control) stopped(sig syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if wantsTerminal(sig) && !c.given && c.tty.ours() && c.lend() {
		_ = c.job.Signal(syscall.SIGCONT)
		return
	}
	if c.job.isStopping() {
		return // whoever ends the job must not be stopped by it
	}
	had := c.takeBack()
	if orphaned() {
		c.carryOn(sig, had)
		return
	}
	c.suspend(sig, had)
}

// wantsTerminal reports the signals of a background process that reads from the
// terminal or changes it.
func wantsTerminal(sig syscall.Signal) bool {
	return sig == syscall.SIGTTIN || sig == syscall.SIGTTOU
}

// suspend stops us, and those of our group whom the same event would have
// stopped if the job were in our group: the terminal's stop key reaches all of
// the foreground, and so do SIGTTIN and SIGTTOU in the background.
//
// SIGSTOP stands in for SIGTSTP on ourselves because Go, once it has caught
// that one, swallows it instead of stopping (sigdisable in
// runtime/signal_unix.go leaves the handler in place).
func (c *control) suspend(sig syscall.Signal, had bool) {
	if wantsTerminal(sig) {
		_ = unix.Kill(0, sig)
		return
	}
	if sig == syscall.SIGTSTP && had {
		suspendPeers()
	}
	_ = unix.Kill(os.Getpid(), syscall.SIGSTOP)
}

// carryOn is for a group that no shell controls, for example below cron or ssh
// without a shell: nobody would ever continue us. The kernel does not let the
// terminal stop such a group, so the job, which is in one only without us, goes
// on; if it wants a terminal it cannot have, it gets what POSIX has for stopped
// members of an orphaned group, SIGHUP and SIGCONT. SIGSTOP is obeyed by the
// job, and not by us, who have a lock to keep.
func (c *control) carryOn(sig syscall.Signal, had bool) {
	if had {
		c.lend()
	}
	switch {
	case wantsTerminal(sig):
		_ = c.job.Signal(syscall.SIGHUP)
		_ = c.job.Signal(syscall.SIGCONT)
	case sig == syscall.SIGTSTP:
		_ = c.job.Signal(syscall.SIGCONT)
	}
}

// orphaned reports that our process group is orphaned: no ancestor outside it,
// next to it, belongs to our session (POSIX, Orphaned Process Group). Only our
// own line of ancestors is looked at; the other members of a pipeline have the
// same.
func orphaned() bool {
	group := syscall.Getpgrp()
	session, err := unix.Getsid(0)
	if err != nil {
		return true
	}
	for pid := os.Getppid(); pid > 0; {
		parentGroup, groupErr := unix.Getpgid(pid)
		parentSession, sessionErr := unix.Getsid(pid)
		if groupErr != nil || sessionErr != nil || parentSession != session {
			return true
		}
		if parentGroup != group {
			return false
		}
		if pid, err = parentOf(pid); err != nil {
			return false
		}
	}
	return true
}
