package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/process"
)

// markAfter is how long a job runs before it is recorded in its lock. Until then its environment
// identifies its processes, and short jobs save the request.
const markAfter = 100 * time.Millisecond

// mark records the process groups of a job in its lock, and again when they change. It checks after a
// second, then ever more rarely, and finally once per heartbeat. It runs in the background, because a
// call that hangs must not delay the end of the job.
type mark struct {
	timer  *time.Timer
	cancel context.CancelFunc
	done   chan struct{}
}

func startMark(ctx context.Context, spec Spec, groups func() []process.Group) stopper {
	if spec.Marks != nil {
		return spec.Marks.add(groups, spec.Work)
	}
	ctx, cancel := context.WithCancel(ctx)
	m := &mark{cancel: cancel, done: make(chan struct{})}
	m.timer = time.AfterFunc(markAfter, func() {
		defer close(m.done)
		keepNoted(ctx, spec, groups)
	})
	return m
}

func keepNoted(ctx context.Context, spec Spec, groups func() []process.Group) {
	var noted []process.Group
	for pause := markPace; ; pause = min(2*pause, beat(spec.Lock)) {
		now := groups()
		if len(now) == 0 {
			return // the job has just ended
		}
		if !slices.Equal(now, noted) {
			if !note(ctx, spec, now) {
				return
			}
			noted = now
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// beat is the time between two checks of a long-running job's groups.
func beat(lock *multilock.Lock) time.Duration {
	return max(lock.Record().Heartbeat, markPace)
}

// stopper is called once when a job is over.
type stopper interface{ stop() }

// stop is called once when the job is over, before the lock is released: a later write would
// disturb the next holder.
func (m *mark) stop() {
	never := m.timer.Stop()
	m.cancel()
	if !never {
		<-m.done
	}
}

// NotedError means that a command was not started because the lock still records an earlier command,
// whose end would prove the holder dead.
type NotedError struct{ Err error }

func (e *NotedError) Error() string {
	return fmt.Sprintf("the record of the job's earlier processes cannot be removed from the lock: %v", e.Err)
}

// Unwrap returns the source's error.
func (e *NotedError) Unwrap() error { return e.Err }

// forget removes the record of a command that is over.
func forget(ctx context.Context, lock *multilock.Lock) error {
	err := lock.MarkJob(ctx)
	if err == nil || errors.Is(err, multilock.ErrUnsupported) {
		return nil
	}
	return &NotedError{err}
}

// note records a job's process groups in its lock, and reports whether to go on. It warns of errors,
// unless the source cannot record groups, or the lock is lost and the loss is handled elsewhere.
func note(ctx context.Context, spec Spec, groups []process.Group) bool {
	err := spec.Lock.MarkJob(ctx, groups...)
	if err == nil {
		return true
	}
	if ctx.Err() == nil && !errors.Is(err, multilock.ErrUnsupported) && !errors.Is(err, multilock.ErrLost) {
		spec.Say("warning: the processes of job %q could not be recorded in its lock: %v", spec.Name, err)
	}
	return false
}
