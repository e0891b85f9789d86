package command

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/job"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// recordAfter delays the first event, so that a short run costs one write. Until then the lock
// itself shows that it is held, and a process that breaks the lock records that.
const recordAfter = 100 * time.Millisecond

// eventLog writes the events of a run to the history.
type eventLog struct {
	write func(events []source.Event)

	mu      sync.Mutex
	pending []source.Event // written with the next events
}

// begin delays the first event.
func (l *eventLog) begin(e source.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending = append(l.pending, e)
	time.AfterFunc(recordAfter, func() { l.record() })
}

// isPending reports whether nothing has been written yet.
func (l *eventLog) isPending() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.pending) > 0
}

// record writes the pending events, and then these.
func (l *eventLog) record(events ...source.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if all := append(l.pending, events...); len(all) > 0 {
		l.write(all)
	}
	l.pending = nil
}

// newEventLog writes to the source's history. A write error stops no job.
func (r *jobRun) newEventLog(ctx context.Context) *eventLog {
	ctx = context.WithoutCancel(ctx)
	return &eventLog{write: func(events []source.Event) {
		if err := r.src.Note(ctx, events...); err != nil && r.opt.Verbose {
			r.env.Say("warning: %v", err)
		}
	}}
}

// recordEnd records the end before the release if nothing was written yet, so that a barrier that
// finds the lock free also finds the end. It returns the recorded event.
func (r *jobRun) recordEnd(result *job.Result, err error) source.EventKind {
	if !r.events.isPending() {
		return ""
	}
	what := endOf(err)
	r.events.record(r.event(what, result, err))
	return what
}

// endOf returns the event that ends a run.
func endOf(err error) source.EventKind {
	if errors.Is(err, multilock.ErrLost) {
		return source.EventLost
	}
	return source.EventReleased
}

// event makes an event about this run.
func (r *jobRun) event(what source.EventKind, result *job.Result, cause error) source.Event {
	event := source.Event{
		Time: time.Now(), What: what, Name: r.lockName(), Token: r.lock.Record().Token, By: r.src.Self,
		User: r.opt.User, Command: r.opt.shown, Fence: r.fence, Waited: r.waited, Attempt: r.attempt.Attempt,
		Tick: r.attempt.Tick, Missed: r.attempt.Missed,
	}
	if what != source.EventAcquired {
		event.Held = time.Since(r.since)
	}
	if what == source.EventCommitted && result != nil {
		event.Held = result.Elapsed // the attempt's duration
	}
	if result != nil {
		ended := resultOf(*result, cause)
		event.Exit, event.Signal = &ended.Exit, ended.Signal
		if ended.Exit != result.Code {
			event.JobExit = &result.Code
		}
	}
	if cause != nil {
		event.Why = cause.Error()
	}
	if result == nil && cause != nil { // the command never ran, so the job is not done
		code := console.ExitCode(cause)
		event.Exit = &code
	}
	return event
}
