package job

import (
	"context"
	"os"
	"syscall"
)

// What is the same for a job whatever it is to the system.

// Done is closed when the command has ended and has been reaped, the terminal is ours again
// and its guard, if it had one, is gone. Processes that the command left behind may still live.
func (j *Job) Done() <-chan struct{} { return j.done }

// Result waits for Done and returns how the command ended.
func (j *Job) Result() Result {
	<-j.done
	return j.result
}

// Forward passes every signal that arrives on the channel on to the job, until that is over,
// the channel is closed or ctx is done. One that asks to end goes to all processes of the job,
// wherever they are: see the package comment. A caller that wants to act on some of them
// itself keeps them off this channel and uses Signal or Stop.
//
// Ctrl-C is not doubled: a terminal sends it to its foreground group, which is either the
// job's or ours, and a console of Windows to us alone.
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
			j.pass(number)
		}
	}
}

// isStopping reports that somebody is ending the job.
func (j *Job) isStopping() bool { return isClosed(j.stopping) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
