package show

import (
	"cmp"
	"time"

	"github.com/multilock/go/multilock/source"
)

// Event is a history event in --json. Its fields are named as in other commands. Stored events have older
// names, for other versions that read them.
type Event struct {
	Time    time.Time `json:"time"`
	What    string    `json:"event"`
	Name    string    `json:"name"`
	Token   string    `json:"token,omitempty"`
	Process           // that caused it
	User    string    `json:"user,omitempty"`
	Command string    `json:"command,omitempty"`
	Holder  *Holder   `json:"holder,omitempty"`
	Why     string    `json:"why,omitempty"`
	Fence   uint64    `json:"fence,omitempty"`
	Waited  float64   `json:"waited_seconds,omitempty"`
	// Held is how long the lock was held, Duration how long a recorded job ran.
	Held       float64     `json:"held_seconds,omitempty"`
	Duration   float64     `json:"duration_seconds,omitempty"`
	Exit       *int        `json:"exit,omitempty"`
	JobExit    *int        `json:"job_exit,omitempty"`
	Signal     string      `json:"signal,omitempty"`
	OutputLost string      `json:"output_lost_because,omitempty"`
	Attempt    int         `json:"attempt,omitempty"`
	Tick       time.Time   `json:"tick,omitzero"`
	Missed     int         `json:"missed_ticks,omitempty"`
	Chunk      *ChunkEvent `json:"chunk,omitempty"`
}

// Process identifies a process. Host and PID alone could match another process.
type Process struct {
	Host      string `json:"host"`
	Machine   string `json:"machine,omitempty"`
	Boot      string `json:"boot,omitempty"`
	Namespace string `json:"pidns,omitempty"`
	PID       int    `json:"pid"`
	Start     uint64 `json:"pid_start,omitempty"`
}

// Holder is the holder of a lock that was broken, or that prevented an acquisition.
type Holder struct {
	Process
	User    string          `json:"user,omitempty"`
	Command string          `json:"command,omitempty"`
	Batch   source.BatchJob `json:"batch_job,omitzero"`
	Every   string          `json:"every,omitempty"`
}

// ChunkEvent is what was recorded of a chunk of a list.
type ChunkEvent struct {
	Chunk
	OutputLost int            `json:"output_lost_count,omitempty"`
	Returned   []source.Range `json:"returned,omitempty"`
	Fence      uint64         `json:"fence,omitempty"`
	Removed    int            `json:"removed,omitempty"`
	Revision   int            `json:"revision,omitempty"`
	Recorded   int            `json:"recorded"`
	Attempts   int            `json:"attempts,omitempty"`
	Busy       float64        `json:"busy_seconds,omitempty"`
}

// EventName is the name of a kind of event. Stored events keep the names that other versions read.
func EventName(kind source.EventKind) string {
	switch kind {
	case source.EventBroke:
		return "broken"
	case source.EventRefused:
		return "not_acquired"
	case source.EventCommitted:
		return "recorded"
	case source.EventForgot:
		return "deleted"
	case source.EventAcquired, source.EventReleased, source.EventLost:
	}
	return string(kind)
}

// EventOf makes the JSON form of an event.
func EventOf(e source.Event) Event {
	v := Event{
		Time: e.Time.UTC(), What: EventName(e.What), Name: e.Name, Token: e.Token, Process: Process(e.By), User: e.User, Command: e.Command,
		Why: e.Why, Fence: e.Fence, Waited: e.Waited.Seconds(), Held: e.Held.Seconds(), Exit: e.Exit, JobExit: e.JobExit, Signal: e.Signal,
		OutputLost: e.Output, Attempt: e.Attempt, Tick: e.Tick.UTC(), Missed: e.Missed,
	}
	if e.What == source.EventCommitted {
		v.Held, v.Duration = 0, v.Held
	}
	if h := e.Holder; h != nil {
		v.Holder = &Holder{Process: Process(h.Identity), User: h.User, Command: h.Command, Batch: h.Batch, Every: h.Every}
	}
	if c := e.Chunk; c != nil {
		v.Command = cmp.Or(v.Command, c.Label)
		v.Chunk = &ChunkEvent{
			Chunk: Chunk{From: c.From, To: c.To, Done: c.Done, Failed: c.Failed}, OutputLost: c.Incomplete, Returned: c.Returned, Fence: c.Fence,
			Removed: c.Removed, Revision: c.Revision, Recorded: c.Recorded, Attempts: c.Attempts, Busy: c.Ran,
		}
	}
	return v
}

// Entry is a stale or unknown entry in --json.
type Entry struct {
	Entry string  `json:"entry"`
	Age   float64 `json:"age_seconds"`
	Why   string  `json:"why"`
}

// EntryOf makes the JSON form of a leftover.
func EntryOf(l source.Leftover) Entry { return Entry{Entry: l.Entry, Age: l.Age.Seconds(), Why: l.Why} }
