package locktest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Event is something that a process did with a lock, or learned about one. Times
// are readings of [Now], so events of processes on one kernel can be compared.
type Event struct {
	// Proc names who acted. It must be another name for every process and, if
	// several goroutines of one compete, for every goroutine.
	Proc string `json:"proc"`
	Kind Kind   `json:"kind"`
	Name string `json:"name,omitempty"` // the lock's
	// Token names the acquisition. For Refused it is the one that was in the way.
	Token string `json:"token,omitempty"`
	Fence uint64 `json:"fence,omitempty"`
	// Start is when the call began that the event reports the return of, 0 if that
	// is not known.
	Start time.Duration `json:"start,omitempty"`
	// Time is when the event happened: for a call's return that is after it, for
	// Releasing and Killed before the call.
	Time time.Duration `json:"time"`
	// Until is when the process stops to believe that it holds the lock, if it
	// learns nothing more: its tenure's end. 0 means never.
	Until time.Duration `json:"until,omitempty"`
}

// Kind is the kind of an Event.
type Kind string

// The kinds of events.
const (
	// Acquired: the acquisition Token succeeded. The belief in it begins.
	Acquired Kind = "acquired"
	// Renewed: a renewal was confirmed, so Until has moved.
	Renewed Kind = "renewed"
	// Fenced: the holder was given the number Fence.
	Fenced Kind = "fenced"
	// Releasing: the holder is about to release. The belief ends.
	Releasing Kind = "releasing"
	// Released: the release was confirmed.
	Released Kind = "released"
	// Lost: the holder was told that it holds the lock no more. The belief ends.
	Lost Kind = "lost"
	// Killed: somebody is about to end the process Proc, and records that in its
	// stead. Its beliefs end.
	Killed Kind = "killed"
	// Unsure: an attempt or a release ended without an answer. Nobody believes in
	// what came of it, but it may be in the way of others.
	Unsure Kind = "unsure"
	// Refused: an attempt met a lock that was held, by Token if that is known.
	Refused Kind = "refused"
)

func (e Event) as(kind Kind) Event {
	e.Kind = kind
	return e
}

func (e Event) from(start time.Duration) Event {
	e.Start = start
	return e
}

// until notes the tenure of a lock that has this much of it left.
func (e Event) until(remaining time.Duration) Event {
	e.Until = Now() + remaining
	return e
}

// Recorder writes the events of one process, or goroutine. It is safe for
// concurrent use.
type Recorder struct {
	proc string
	mu   sync.Mutex
	out  io.Writer
}

// NewRecorder returns a recorder that writes each event of proc as one line of
// JSON, in one call of out.Write: several processes may append to one file.
func NewRecorder(out io.Writer, proc string) *Recorder {
	return &Recorder{proc: proc, out: out}
}

// Record writes an event. Proc is filled in, and Time if it is 0.
func (r *Recorder) Record(e Event) error {
	if e.Time == 0 {
		e.Time = Now()
	}
	e.Proc = r.proc
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("record an event: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.out.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("record an event: %w", err)
	}
	return nil
}

// ReadEvents reads what recorders wrote. A last line that is torn, as by the end
// of its writer, is left out; any other that cannot be read is an error.
func ReadEvents(r io.Reader) ([]Event, error) {
	lines := bufio.NewReader(r)
	var events []Event
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read events: %w", err)
		}
		var e Event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("read events: line %d: %w", n, err)
		}
		events = append(events, e)
	}
}
