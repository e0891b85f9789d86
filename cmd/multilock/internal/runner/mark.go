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

// markAfter is when a job is noted in its lock: short ones do not pay for it. Until
// then, its processes are known by their environment.
const markAfter = 100 * time.Millisecond

// mark notes the process groups of a job in its lock once some time has passed, and again
// when there are others: a second later, then less and less often, and with each heartbeat
// in the end. A call that hangs delays nothing: the job must be ended in time all the same.
type mark struct {
	timer  *time.Timer
	cancel context.CancelFunc
	done   chan struct{}
}

func startMark(ctx context.Context, spec Spec, groups func() []process.Group) stopper {
	if spec.Marks != nil {
		return spec.Marks.add(groups)
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
			return // it has just ended
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

// beat is the time between two looks at the groups of a long job.
func beat(lock *multilock.Lock) time.Duration {
	return max(lock.Record().Heartbeat, markPace)
}

// stopper is told once that a job is over.
type stopper interface{ stop() }

// stop is for when the job is over, once, and before the lock is given back: what is
// noted after that would be in the way.
func (m *mark) stop() {
	never := m.timer.Stop()
	m.cancel()
	if !never {
		<-m.done
	}
}

// NotedError says that a command was not started because an earlier one is still noted
// in the lock: that would testify that nobody works there.
type NotedError struct{ Err error }

func (e *NotedError) Error() string {
	return fmt.Sprintf("what is noted in the lock of the job's earlier processes cannot be taken back: %v", e.Err)
}

// Unwrap gives the source's error.
func (e *NotedError) Unwrap() error { return e.Err }

// forget takes back what was noted of a command that is over.
func forget(ctx context.Context, lock *multilock.Lock) error {
	err := lock.MarkJob(ctx)
	if err == nil || errors.Is(err, multilock.ErrUnsupported) {
		return nil
	}
	return &NotedError{err}
}

// note writes a job's process groups into its lock, and reports whether there is sense in
// going on. That a source keeps no such note was known before, and a lost lock ends the job.
func note(ctx context.Context, spec Spec, groups []process.Group) bool {
	err := spec.Lock.MarkJob(ctx, groups...)
	if err == nil {
		return true
	}
	if ctx.Err() == nil && !errors.Is(err, multilock.ErrUnsupported) && !errors.Is(err, multilock.ErrLost) {
		spec.Say("warning: the processes of job %q could not be noted in its lock: %v", spec.Name, err)
	}
	return false
}
