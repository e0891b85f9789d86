package runner

import (
	"context"
	"errors"
	"time"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/process"
)

// markAfter is when a job is noted in its lock: short ones do not pay for it. Until
// then, and of what leaves its group, its processes are known by their environment.
const markAfter = 100 * time.Millisecond

// mark notes the processes of a job in its lock once some time has passed. It is in
// nobody's way when the call hangs: the job must be ended in time all the same.
type mark struct {
	timer  *time.Timer
	cancel context.CancelFunc
	done   chan struct{}
}

func startMark(ctx context.Context, spec Spec, group process.Group) *mark {
	ctx, cancel := context.WithCancel(ctx)
	m := &mark{cancel: cancel, done: make(chan struct{})}
	m.timer = time.AfterFunc(markAfter, func() {
		defer close(m.done)
		note(ctx, spec, group)
	})
	return m
}

// stop is for when the job is over, once, and before the lock is given back: what is
// noted after that would be in the way.
func (m *mark) stop() {
	never := m.timer.Stop()
	m.cancel()
	if !never {
		<-m.done
	}
}

// forget takes back what was noted of a command that is over, before the next one
// starts: it would testify that nobody works under the lock.
func forget(ctx context.Context, spec Spec) { note(ctx, spec, process.Group{}) }

// note writes a job's processes into its lock. That a source keeps no such note was
// known before, and that the lock is lost those are told who end the job.
func note(ctx context.Context, spec Spec, group process.Group) {
	err := spec.Lock.MarkJob(ctx, group)
	if err == nil || ctx.Err() != nil || errors.Is(err, multilock.ErrUnsupported) || errors.Is(err, multilock.ErrLost) {
		return
	}
	spec.Say("warning: the processes of job %q could not be noted in its lock: %v", spec.Name, err)
}
