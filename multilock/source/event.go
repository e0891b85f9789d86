package source

import (
	"time"

	"github.com/multilock/go/multilock/process"
)

// Event is something that happened to a lock, as recorded in the history. Events are for users: no
// decision depends on them, and their times are those of the host that wrote them.
type Event struct {
	Time  time.Time        `json:"time"`
	What  EventKind        `json:"event"`
	Name  string           `json:"name"`
	Token string           `json:"token,omitempty"`
	By    process.Identity `json:"by"` // the process that caused it
	User  string           `json:"user,omitempty"`
	// Command is the command that ran, or for which the lock was acquired.
	Command string `json:"command,omitempty"`
	// Holder is the holder whose lock was broken.
	Holder *Holder `json:"holder,omitempty"`
	// Why is the evidence on which a lock was broken, or why it was lost.
	Why string `json:"why,omitempty"`
	// Fence is the acquisition's fencing token, 0 if none was issued.
	Fence uint64 `json:"fence,omitempty"`
	// Waited is how long the acquisition took. Held is how long the lock was held; of a committed
	// result, how long its job ran.
	Waited time.Duration `json:"waited_ns,omitempty"`
	Held   time.Duration `json:"held_ns,omitempty"`
	// Exit is the exit code of the command, Signal the signal that ended it. If the holder itself
	// exits with another code, because of a time limit or a lost lock, Exit is that code and
	// JobExit the command's. If the command could not be started, Exit is the code of the process
	// that tried.
	Exit    *int   `json:"exit,omitempty"`
	JobExit *int   `json:"job_exit,omitempty"`
	Signal  string `json:"signal,omitempty"`
	// Output is why the command's output was not captured as a whole.
	Output string `json:"output,omitempty"`
	// Attempt counts the recorded runs of a job, from 1.
	Attempt int `json:"attempt,omitempty"`
	// Tick is the tick that the job ran for, by the source's clock, and Missed the number of ticks
	// without a run just before it: see Result.
	Tick   time.Time `json:"tick,omitzero"`
	Missed int       `json:"missed,omitempty"`
	// Chunk summarises a chunk when its result was recorded, without the results of its jobs.
	Chunk *Chunk `json:"chunk,omitempty"`
}

// OK reports whether the event is the end of a job that succeeded, with its output captured.
func (e Event) OK() bool {
	return e.Exit != nil && *e.Exit == 0 && e.Signal == "" && e.Output == ""
}

// EventKind is the kind of an Event.
type EventKind string

// The kinds of events.
const (
	EventAcquired EventKind = "acquired"
	EventReleased EventKind = "released"
	EventLost     EventKind = "lost"
	EventBroke    EventKind = "broke"
	EventRefused  EventKind = "refused" // another process held the lock
	// EventCommitted means that the result of a job was recorded, EventForgot that it was removed.
	EventCommitted EventKind = "committed"
	EventForgot    EventKind = "forgot"
)

// EventKinds returns all kinds of events.
func EventKinds() []EventKind {
	return []EventKind{EventAcquired, EventReleased, EventLost, EventBroke, EventRefused, EventCommitted, EventForgot}
}

// BrokeEvent returns the event that process by broke the lock of a record.
func BrokeEvent(r Record, by process.Identity, user, why string) Event {
	return Event{Time: time.Now(), What: EventBroke, Name: r.Name, Token: r.Token, By: by, User: user, Holder: &r.Holder, Why: why}
}

// CommittedEvent returns the event that a result was recorded.
func CommittedEvent(r Result, at time.Time) Event {
	return Event{
		Time: at, What: EventCommitted, Name: r.Name, Token: r.Token, By: r.By, User: r.User, Command: r.Command, Why: r.Why,
		Output: r.Output, Held: r.Duration, Exit: &r.Exit, Signal: r.Signal, Attempt: r.Attempt, Tick: r.Tick, Missed: r.Missed, Chunk: r.Chunk.summary(),
	}
}
