package main

import (
	"context"
	"errors"
	"time"

	"github.com/multilock/go/cmd/multilock/job"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/process"
)

// markAfter is when a job is noted in its lock: short ones do not pay for it. Until
// then a lock whose holder died is taken over by its silence alone.
const markAfter = 100 * time.Millisecond

// jobMark notes the processes of a job in its lock once some time has passed. It is
// in nobody's way when the call hangs: the job must be ended in time all the same.
type jobMark struct {
	timer  *time.Timer
	cancel context.CancelFunc
	done   chan struct{}
}

func startJobMark(ctx context.Context, e *env, lock *multilock.Lock, j *job.Job, name string) *jobMark {
	ctx, cancel := context.WithCancel(ctx)
	m := &jobMark{cancel: cancel, done: make(chan struct{})}
	m.timer = time.AfterFunc(markAfter, func() {
		defer close(m.done)
		noteJob(ctx, e, lock, j.Group(), name)
	})
	return m
}

// stop is for when the job is over, once, and before the lock is given back: what is
// noted after that would be in the way.
func (m *jobMark) stop() {
	never := m.timer.Stop()
	m.cancel()
	if !never {
		<-m.done
	}
}

// forgetJob takes back what was noted of an attempt that is over, before the next one
// starts: it would testify that nobody works under the lock.
func forgetJob(ctx context.Context, e *env, lock *multilock.Lock, name string) {
	noteJob(ctx, e, lock, process.Group{}, name)
}

// noteJob writes a job's processes into its lock. That a source keeps no such note was
// known before, and that the lock is lost those are told who end the job.
func noteJob(ctx context.Context, e *env, lock *multilock.Lock, group process.Group, name string) {
	err := lock.MarkJob(ctx, group)
	if err == nil || ctx.Err() != nil || errors.Is(err, multilock.ErrUnsupported) || errors.Is(err, multilock.ErrLost) {
		return
	}
	e.say("warning: the processes of job %q could not be noted in its lock: %v", name, err)
}
