//go:build unix

package job

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/multilock/go/multilock/process"
)

// Job is a running command, or one that has ended. Its methods may be called from any goroutine.
type Job struct {
	spec    Spec
	pid     int
	pidfd   int           // only on Linux, until the command's end is awaited
	group   process.Group // cached by Group; guarded by the lock of the tree
	started time.Time
	tree    *tree
	control *control // nil without job control

	over     chan struct{} // closed when the command has been reaped
	helpers  sync.WaitGroup
	awaited  *time.Timer // starts the guard
	stops    sync.Once
	stopping chan struct{} // closed when Stop has been called

	done   chan struct{}
	result Result // valid once done is closed
}

// Group identifies the job's process group, to record it in a lock. Fields that the system does not
// provide are empty; all are empty if the command had been reaped at the first call. The group is
// looked up on demand, to save the cost for short jobs.
func (j *Job) Group() process.Group {
	j.tree.mu.Lock()
	defer j.tree.mu.Unlock()
	if j.group.PGID == 0 && j.tree.alive {
		group, err := j.spec.findGroup(j.pid)
		if err != nil {
			group = process.Group{PGID: j.pid}
		}
		j.group = group
	}
	return j.group
}

// Signal sends sig to every process of the job's group. After the command has been reaped it
// returns os.ErrProcessDone and sends nothing, because the number of the group may be in use again.
func (j *Job) Signal(sig syscall.Signal) error {
	if err := j.tree.signalGroup(sig); err != nil {
		return fmt.Errorf("signal job %d: %w", j.pid, err)
	}
	return nil
}

// Stop ends the whole job: SIGTERM to all its processes, and SIGKILL to those still alive after the
// grace, or when ctx is done. It continues a stopped job so that it can act on SIGTERM. It returns
// nil when the command has been reaped and no process of the job lives, and a *LingeringError when
// some are alive ten seconds after SIGKILL. The package comment defines which processes belong to the
// job.
//
// After Done, Stop ends processes that the command left behind in its process group. It may be called
// more than once, and by several goroutines.
func (j *Job) Stop(ctx context.Context, grace time.Duration) error {
	j.stops.Do(func() { close(j.stopping) })
	if err := j.tree.end(ctx, grace); err != nil {
		return err
	}
	<-j.done
	return nil
}

// watch waits for the end of the job.
func (j *Job) watch() {
	for {
		status := j.next()
		if status.Stopped() {
			j.stopped(status.StopSignal())
			continue
		}
		j.finish(status)
		return
	}
}

func (j *Job) finish(status syscall.WaitStatus) {
	j.result = Result{
		Code:    status.ExitStatus(),
		Started: j.started,
		Elapsed: time.Since(j.started),
	}
	if status.Signaled() {
		j.result.Signal = status.Signal()
		j.result.Code = 128 + int(status.Signal())
	}
	if j.control != nil {
		killed := status.Signaled() || j.isStopping()
		j.result.Terminal = j.control.finish(killed)
	}
	close(j.over)
	j.spareGuard()
	j.helpers.Wait()
	close(j.done)
}

// unknownStatus replaces a status that is lost because other code in this process has reaped the
// child (ECHILD). It reads as exit code 125, the code for failures of the runner.
const unknownStatus = syscall.WaitStatus(125 << 8)
