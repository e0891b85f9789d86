package locktest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
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

// Note records what the holder of a lock believes, or is about to do. Start is when the
// call began that made it so, 0 if that is not known. An Acquired or Renewed event says
// how long the belief lasts. Once it is over, nothing renews it: ErrLost.
//
// The clock is read before the lock's own word is, so that the belief never seems to
// last longer than it did.
func (r *Recorder) Note(lock *multilock.Lock, kind Kind, start time.Duration) error {
	record := lock.Record()
	e := Event{Kind: kind, Name: record.Name, Token: record.Token, Start: start, Time: Now()}
	if kind == Acquired || kind == Renewed {
		e.Until = e.Time + lock.Remaining()
	}
	if kind == Renewed && e.Until == e.Time {
		return source.ErrLost
	}
	return r.Record(e)
}

// ReadEvents reads what recorders wrote. A last line that is torn, as by the end
// of its writer, is left out; any other that cannot be read is an error.
func ReadEvents(r io.Reader) ([]Event, error) { return readLines[Event](r) }

// readLines reads whole lines, each a value in JSON.
func readLines[E any](r io.Reader) ([]E, error) {
	lines := bufio.NewReader(r)
	var events []E
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read events: %w", err)
		}
		var e E
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("read events: line %d: %w", n, err)
		}
		events = append(events, e)
	}
}

// ReadEventFiles reads all files whose names match a pattern of [filepath.Glob].
func ReadEventFiles(pattern string) ([]Event, error) {
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	var all []Event
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read events: %w", err)
		}
		events, err := ReadEvents(bytes.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, events...)
	}
	return all, nil
}

// Finished counts the acquisitions that ended with a word of their holder: with a
// release, or a loss. A holder that was killed has not finished.
func Finished(events []Event) int {
	count := 0
	for _, e := range events {
		if e.Kind == Releasing || e.Kind == Lost {
			count++
		}
	}
	return count
}

// SelfOn is the identity of this process as it would be on the host of that name: all
// others take it for a process elsewhere. With "" it is the real one.
func SelfOn(host string) (process.Identity, error) {
	self, err := process.Self()
	if host != "" {
		self.Host, self.Boot, self.Machine = host, "boot of "+host, "machine of "+host
	}
	return self, err
}
