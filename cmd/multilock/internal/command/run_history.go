package command

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// recordAfter delays the first event, so that a short run needs only one write. Until then the lock itself
// shows that it is held, and a process that breaks it records that.
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

// record writes the pending events, and then the given ones.
func (l *eventLog) record(events ...source.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if all := append(l.pending, events...); len(all) > 0 {
		l.write(all)
	}
	l.pending = nil
}

// newEventLog writes to the source's history. A write error does not affect the job.
func (r *attempts) newEventLog(ctx context.Context) *eventLog {
	ctx = context.WithoutCancel(ctx)
	return &eventLog{write: func(events []source.Event) {
		if err := r.src.Note(ctx, events...); err != nil && r.Verbose {
			r.env.Say("warning: %v", err)
		}
	}}
}

// endOf returns the kind of event that ends a run.
func endOf(err error) source.EventKind {
	if errors.Is(err, multilock.ErrLost) {
		return source.EventLost
	}
	return source.EventReleased
}

// event makes an event about this run.
func (f facts) event(what source.EventKind, cause error) source.Event {
	event := source.Event{
		Time: time.Now(), What: what, Name: f.lockName(), Token: f.lock.Record().Token, By: f.self,
		User: f.User, Command: f.job.shown, Fence: f.fence, Waited: f.waited, Attempt: f.attempt.Attempt,
		Tick: f.attempt.Tick, Missed: f.attempt.Missed,
	}
	if what != source.EventAcquired {
		event.Held = time.Since(f.since)
	}
	if cause != nil {
		event.Why = cause.Error()
	}
	switch {
	case f.result != nil:
		ended := resultOf(*f.result, cause)
		event.Exit, event.Signal = &ended.Exit, ended.Signal
		if ended.Exit != f.result.Code {
			event.JobExit = &f.result.Code
		}
		if what == source.EventCommitted {
			event.Held = f.result.Elapsed // the attempt's duration
		}
	case cause != nil: // the command did not run, so the job is not done
		code := console.ExitCode(cause)
		event.Exit = &code
	}
	return event
}
