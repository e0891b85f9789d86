package main

import (
	"context"
	"errors"
	"time"

	"github.com/multilock/go/cmd/multilock/job"
	"github.com/multilock/go/multilock"
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

func startJobMark(ctx context.Context, e *env, lock *multilock.Lock, j *job.Job, name string, after time.Duration) *jobMark {
	ctx, cancel := context.WithCancel(ctx)
	m := &jobMark{cancel: cancel, done: make(chan struct{})}
	m.timer = time.AfterFunc(after, func() {
		defer close(m.done)
		noteJob(ctx, e, lock, j, name)
	})
	return m
}

// stop is for when the job is over, and before the lock is given back: what is noted
// after that would be in the way. It says whether the job may have been noted.
func (m *jobMark) stop() bool {
	never := m.timer.Stop()
	m.cancel()
	if !never {
		<-m.done
	}
	return !never
}

// noteJob does it. That a source keeps no such note was known before, and that the
// lock is lost those are told who end the job.
func noteJob(ctx context.Context, e *env, lock *multilock.Lock, j *job.Job, name string) {
	err := lock.MarkJob(ctx, j.Group())
	if err == nil || ctx.Err() != nil || errors.Is(err, multilock.ErrUnsupported) || errors.Is(err, multilock.ErrLost) {
		return
	}
	e.say("warning: the processes of job %q could not be noted in its lock: %v", name, err)
}
