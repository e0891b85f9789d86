//go:build unix

package job

import (
	"context"
	"time"
)

// Stop ends the whole job: SIGTERM to all its processes, and SIGKILL to those
// that live after the grace, or when ctx is done. A stopped job is continued so
// that it can act on SIGTERM. It returns nil when the command has been reaped
// and no process of the job lives, and a *LingeringError when some live on ten
// seconds after SIGKILL. Who belongs to the job is said in the package comment.
//
// After Done, Stop ends what the command has left behind in its process group.
// It may be called more than once, and by several goroutines.
func (j *Job) Stop(ctx context.Context, grace time.Duration) error {
	j.stops.Do(func() { close(j.stopping) })
	if err := j.tree.end(ctx, grace); err != nil {
		return err
	}
	<-j.done
	return nil
}

// isStopping reports that somebody is ending the job.
func (j *Job) isStopping() bool {
	select {
	case <-j.stopping:
		return true
	default:
		return false
	}
}
