package runner

import (
	"context"
	"syscall"
	"time"
)

// Told says when this process was told to end. Who ends all processes of an allocation,
// of a service or of a session tells each of them, in any order: what a job does about
// it is not its failure.
type Told struct {
	// Any is closed when it was told by any signal, Job when by one that reaches the job
	// as well, or soon will: passed on by us, or sent by the same hand. Either may be nil.
	Any, Job <-chan struct{}
}

// toldLag is how much later than a job this process may be told.
const toldLag = time.Second

// wasTold says of a command that ended by itself whether it was told to end, as we were.
// If its end looks so, and is to be recorded, word may still be on its way to us.
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

// Told says, after Wait, that the command was told to end as this process was: if it has
// failed, that is not its own failure.
func (r *Run) Told() bool { return r.told || isClosed(r.spec.Told.Job) }
