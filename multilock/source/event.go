package source

import (
	"time"

	"github.com/multilock/go/multilock/process"
)

// Event is something that happened to a lock, as its source's history keeps it.
// Events are for people: nothing is decided by them, and their times are those
// of the host that wrote them.
type Event struct {
	Time  time.Time        `json:"time"`
	What  EventKind        `json:"event"`
	Name  string           `json:"name"`
	Token string           `json:"token,omitempty"`
	By    process.Identity `json:"by"` // who did it
	User  string           `json:"user,omitempty"`
	// Command is the command that ran, or that the lock was taken for.
	Command string `json:"command,omitempty"`
	// Holder is whose lock was broken.
	Holder *Holder `json:"holder,omitempty"`
	// Why is the evidence on which a lock was broken, or why it was lost.
	Why string `json:"why,omitempty"`
	// Fence is the acquisition's fencing token, 0 if none was drawn.
	Fence uint64 `json:"fence,omitempty"`
	// Waited is how long the acquisition took, Held how long the lock was held; with a
	// result that was recorded, how long its job ran.
	Waited time.Duration `json:"waited_ns,omitempty"`
	Held   time.Duration `json:"held_ns,omitempty"`
	// Exit is the exit code of the command, Signal the signal that ended it. If the holder
	// itself ends with another code, because of a time limit or a lost lock, Exit is that one,
	// and JobExit the command's. Of a command that could not be started Exit is the code of who
	// tried.
	Exit    *int   `json:"exit,omitempty"`
	JobExit *int   `json:"job_exit,omitempty"`
	Signal  string `json:"signal,omitempty"`
	// Output says why what the command has printed is not kept as a whole.
	Output string `json:"output,omitempty"`
	// Attempt counts the runs of a job whose results are recorded, from 1.
	Attempt int `json:"attempt,omitempty"`
	// Tick is the one that the job ran for, by the source's clock, and Missed how many had
	// gone without a run just before it: see Result.
	Tick   time.Time `json:"tick,omitzero"`
	Missed int       `json:"missed,omitempty"`
	// Chunk says how far the jobs of a chunk had come when its result was recorded. Their
	// results are not in it.
	Chunk *Chunk `json:"chunk,omitempty"`
}

// OK says of the end of a job that there is nothing about it but that it is a success.
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
	EventRefused  EventKind = "refused" // it was held by somebody else
	// EventCommitted says that the result of a job was recorded, EventForgot that it was removed.
	EventCommitted EventKind = "committed"
	EventForgot    EventKind = "forgot"
)

// EventKinds are all of them.
func EventKinds() []EventKind {
	return []EventKind{EventAcquired, EventReleased, EventLost, EventBroke, EventRefused, EventCommitted, EventForgot}
}

// BrokeEvent says that by broke the lock of a record, and why.
func BrokeEvent(r Record, by process.Identity, user, why string) Event {
	return Event{Time: time.Now(), What: EventBroke, Name: r.Name, Token: r.Token, By: by, User: user, Holder: &r.Holder, Why: why}
}

// CommittedEvent says that a result was recorded at a moment.
func CommittedEvent(r Result, at time.Time) Event {
	return Event{
		Time: at, What: EventCommitted, Name: r.Name, Token: r.Token, By: r.By, User: r.User, Command: r.Command, Why: r.Why,
		Output: r.Output, Held: r.Duration, Exit: &r.Exit, Signal: r.Signal, Attempt: r.Attempt, Tick: r.Tick, Missed: r.Missed, Chunk: r.Chunk.summary(),
	}
}
