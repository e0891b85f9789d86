package runner

import (
	"context"
	"syscall"
	"time"
)

// Told says when this process was asked to end. What ends all processes of an allocation, service
// or session signals them in any order; a job that ends because of that has not failed.
type Told struct {
	// Any is closed when this process got any signal to end, Job when that signal also reached the
	// job, or soon will: passed on from here, or sent by the same sender. Either may be nil.
	Any, Job <-chan struct{}
}

// toldLag is how much later than a job this process may get the signal.
const toldLag = time.Second

// wasTold reports whether a command that ended by itself was asked to end, as this process was. If
// that seems so, and the result is to be recorded, it waits: the signal may still be on its way
// here.
func (r *Run) wasTold(ctx context.Context) bool {
	asked := r.job.Result().Asked()
	switch {
	case isClosed(r.spec.Told.Job):
		return true
	case asked == 0:
		return false
	case r.job.Result().Terminal && (asked == syscall.SIGINT || asked == syscall.SIGQUIT):
		return true // a key, which reached the job alone
	case r.spec.Recorded:
		r.awaitWord(ctx)
	}
	return isClosed(r.spec.Told.Any)
}

func (r *Run) awaitWord(ctx context.Context) {
	lag := time.NewTimer(toldLag)
	defer lag.Stop()
	select {
	case <-r.spec.Told.Any:
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

// Told reports, after Wait, whether the command was asked to end as this process was; a failure is
// then not its own.
func (r *Run) Told() bool { return r.told || isClosed(r.spec.Told.Job) }
