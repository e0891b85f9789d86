package job

import (
	"context"
	"os"
	"syscall"
)

// Done is closed when the command has ended and has been reaped, the runner has the terminal again,
// and the guard, if any, is gone. Processes that the command left behind may still live.
func (j *Job) Done() <-chan struct{} { return j.done }

// Result waits for Done and returns the outcome of the command.
func (j *Job) Result() Result {
	<-j.done
	return j.result
}

// Forward passes every signal from the channel on to the job, until the job is over, the channel is
// closed or ctx is done. A signal that asks to end goes to all processes of the job: see the
// package comment. A caller that handles some signals itself keeps them off this channel and uses
// Signal or Stop.
//
// Ctrl-C does not arrive twice: a terminal sends it to its foreground group, which is either the
// job's or the runner's, and a Windows console only to the runner.
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
			number, _ := sig.(syscall.Signal) // 0 has no effect
			j.pass(number)
		}
	}
}

// isStopping reports whether Stop was called.
func (j *Job) isStopping() bool { return isClosed(j.stopping) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
