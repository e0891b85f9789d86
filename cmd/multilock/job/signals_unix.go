//go:build unix

package job

import (
	"context"
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

// Forward passes every signal that arrives on the channel on to the job's group,
// until the job is over, the channel is closed or ctx is done. One that asks to end goes
// to all processes of the job, wherever they are: see the package comment. A caller
// that wants to act on some of them itself keeps them off this channel and uses
// Signal or Stop.
//
// Ctrl-C is not doubled: the terminal sends it to its foreground group, which is
// either the job's or ours.
func (j *Job) Forward(ctx context.Context, signals <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-j.done:
			return
		case sig, open := <-signals:
			if !open {
				return
			}
			number, _ := sig.(syscall.Signal) // 0 reaches nobody
			if Asks(sig) {
				j.tree.send(number)
			} else {
				_ = j.Signal(number) // fails only when the job is over
			}
		}
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
