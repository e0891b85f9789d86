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

// tellAfter is when the history is told that a run has begun: of a short one all is told
// with one write. Who holds the lock, the lock says until then, and if its holder is killed,
// who breaks it.
const tellAfter = 100 * time.Millisecond

// story is what the history is told of a run.
type story struct {
	write func(events []source.Event)

	mu   sync.Mutex
	kept []source.Event // to be told with what follows
}

// begin keeps the first event for a while.
func (s *story) begin(e source.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = append(s.kept, e)
	time.AfterFunc(tellAfter, func() { s.tell() })
}

// isKept says whether nothing was told yet.
func (s *story) isKept() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.kept) > 0
}

// tell writes what was kept, and then these.
func (s *story) tell(events ...source.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if all := append(s.kept, events...); len(all) > 0 {
		s.write(all)
	}
	s.kept = nil
}

// newStory writes to the history. That it cannot be written stops no job.
func (r *jobRun) newStory(ctx context.Context) *story {
	ctx = context.WithoutCancel(ctx)
	return &story{write: func(events []source.Event) {
		if err := r.src.Note(ctx, events...); err != nil && r.opt.Verbose {
			r.env.Say("warning: %v", err)
		}
	}}
}

// tellEnd tells how the run ended, before the lock is released if nothing was told yet: a
// barrier that finds the lock free is to find all of it. It returns what was told.
func (r *jobRun) tellEnd(result *job.Result, err error) source.EventKind {
	if !r.story.isKept() {
		return ""
	}
	what := endOf(err)
	r.story.tell(r.event(what, result, err))
	return what
}

// endOf is the event with which a run ends.
func endOf(err error) source.EventKind {
	if errors.Is(err, multilock.ErrLost) {
		return source.EventLost
	}
	return source.EventReleased
}

// event is one about this run.
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
		event.Held = result.Elapsed // that of the attempt
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
	if result == nil && cause != nil { // the command never ran, and so its job is not done
		code := console.ExitCode(cause)
		event.Exit = &code
	}
	return event
}
