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

// Signals returns the signals that a runner should catch for its job and pass
// on, in whatever way: SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2 and
// SIGWINCH, without those that were ignored when we were started. Call it before
// any signal.Notify, and catch no others of them: to catch an ignored signal is
// to take the ignoring away from the job (nohup), too.
func Signals() []os.Signal {
	all := []os.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH,
	}
	keepIgnored()
	return slices.DeleteFunc(all, signal.Ignored)
}

// pass sends what Forward has got.
func (j *Job) pass(sig syscall.Signal) {
	if Asks(sig) {
		j.tree.send(sig)
	} else {
		_ = j.Signal(sig) // fails only when the job is over
	}
}

// reraisePatience is far beyond what the kernel needs to deliver a signal.
const reraisePatience = 5 * time.Second

// Reraise ends the calling process by SIGINT if the job was ended by it, so
// that a shell sees what it would have seen without us: most shells go on with a
// script when a command merely exits after Ctrl-C. If the key reached the job
// alone, our whole process group gets the signal, because without us a script
// that waits for us would have got it, too. Call it last. It returns when the
// job was not ended by SIGINT, or when SIGINT is ignored here.
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
