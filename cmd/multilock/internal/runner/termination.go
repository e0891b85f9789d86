package runner

import (
	"context"
	"syscall"
	"time"
)

// Termination reports when this process was asked to end. At the end of an allocation, service or session
// all its processes get a signal, in any order; a job that ends because of that signal has not failed.
type Termination struct {
	// Any is closed when this process got any signal to end. Job is closed when that signal also
	// reached the job or soon will: it was passed on, or its sender also signals the job. Both may be nil.
	Any, Job <-chan struct{}
}

// signalLag is how much later than the job this process may get the signal.
const signalLag = time.Second

// wasTerminated reports whether a command that ended by itself was asked to end, together with this process.
// If that is likely, and the result will be recorded, it waits, because this process may get the
// signal later.
func (r *Run) wasTerminated(ctx context.Context) bool {
	asked := r.job.Result().Asked()
	switch {
	case isClosed(r.spec.Termination.Job):
		return true
	case asked == 0:
		return false
	case r.job.Result().Terminal && (asked == syscall.SIGINT || asked == syscall.SIGQUIT):
		return true // a key that signals only the job
	case r.spec.Recorded:
		r.awaitSignal(ctx)
	}
	return isClosed(r.spec.Termination.Any)
}

func (r *Run) awaitSignal(ctx context.Context) {
	lag := time.NewTimer(signalLag)
	defer lag.Stop()
	select {
	case <-r.spec.Termination.Any:
	case <-r.spec.Lock.Context().Done():
	case <-ctx.Done():
	case <-lag.C:
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Terminated reports, after Wait, whether the command was asked to end together with this process; then a
// failure is not the command's own.
func (r *Run) Terminated() bool { return r.terminated || isClosed(r.spec.Termination.Job) }
