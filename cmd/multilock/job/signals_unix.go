//go:build unix

package job

import (
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Signals returns the signals that a runner should catch and pass on to its job: SIGHUP, SIGINT,
// SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2 and SIGWINCH, without those that were ignored when the runner
// started. Call it before any signal.Notify, and do not catch others of these signals: a signal that
// was ignored and is caught would no longer be ignored in the job (nohup).
func Signals() []os.Signal {
	all := []os.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH,
	}
	keepIgnored()
	return slices.DeleteFunc(all, signal.Ignored)
}

// pass passes on a signal from Forward.
func (j *Job) pass(sig syscall.Signal) {
	if Asks(sig) {
		j.tree.send(sig)
	} else {
		_ = j.Signal(sig) // fails only when the job is over
	}
}

// reraisePatience is much longer than the kernel needs to deliver a signal.
const reraisePatience = 5 * time.Second

// Reraise ends the calling process by SIGINT if that ended the job, so that a shell sees the same end as
// without the runner: most shells continue a script when a command merely exits after Ctrl-C. If the
// key only reached the job, the runner's whole process group gets the signal, because a script that
// waits for the runner would otherwise have got it, too. Call it last. It returns if the job was not
// ended by SIGINT, or if SIGINT is ignored here.
func (r Result) Reraise() {
	if r.Signal != syscall.SIGINT || signal.Ignored(syscall.SIGINT) {
		return
	}
	signal.Reset(syscall.SIGINT)
	target := os.Getpid()
	if r.Terminal {
		target = 0
	}
	if unix.Kill(target, syscall.SIGINT) == nil {
		<-time.After(reraisePatience)
	}
}
