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

// Event is an action of a process on a lock, or something that it learned about one. Times are readings of
// [Now], so events of processes on one kernel can be compared.
type Event struct {
	// Proc names the process. It must be different for every process and, if several goroutines of one
	// process compete, for every goroutine.
	Proc string `json:"proc"`
	Kind Kind   `json:"kind"`
	Name string `json:"name,omitempty"` // the lock's
	// Token names the acquisition. For Refused it is the acquisition that held the lock.
	Token string `json:"token,omitempty"`
	Fence uint64 `json:"fence,omitempty"`
	// Start is when the call began whose return the event reports, 0 if that is unknown.
	Start time.Duration `json:"start,omitempty"`
	// Time is when the event happened: after the return of a call; for Releasing and Killed before the
	// call.
	Time time.Duration `json:"time"`
	// Until is when the process stops relying on the lock, if it learns nothing more: the end of its
	// validity. 0 means never.
	Until time.Duration `json:"until,omitempty"`
}

// Kind is the kind of an Event.
type Kind string

// The kinds of events.
const (
	// Acquired: the acquisition Token succeeded. The hold begins.
	Acquired Kind = "acquired"
	// Renewed: a renewal was confirmed, so Until has moved.
	Renewed Kind = "renewed"
	// Fenced: the holder got the number Fence.
	Fenced Kind = "fenced"
	// Releasing: the holder is about to release. The hold ends.
	Releasing Kind = "releasing"
	// Released: the release was confirmed.
	Released Kind = "released"
	// Lost: the holder was informed of the loss of its lock. The hold ends.
	Lost Kind = "lost"
	// Killed: another process is about to kill the process Proc, and records that in its place. Its holds
	// end.
	Killed Kind = "killed"
	// Unsure: an attempt or a release ended without an answer. No process relies on its outcome, but it may
	// block others.
	Unsure Kind = "unsure"
	// Refused: an attempt found the lock held, by Token if that is known.
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

// Recorder writes the events of one process, or goroutine. It is safe for concurrent use.
type Recorder struct {
	proc string
	mu   sync.Mutex
	out  io.Writer
}

// NewRecorder returns a recorder that writes each event of proc as one line of JSON, in one call of
// out.Write: several processes may append to one file.
func NewRecorder(out io.Writer, proc string) *Recorder {
	return &Recorder{proc: proc, out: out}
}

// Record writes an event. It sets Proc, and Time if it is 0.
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

// Note records the state of a lock for its holder, or what the holder is about to do. Start is when the
// call began that led to it, 0 if that is unknown. An Acquired or Renewed event records how long the lock
// is valid. Once that is over, nothing can extend it: ErrLost.
//
// It reads the clock before it asks the lock, so that the hold never seems to last longer than it did.
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

// ReadEvents reads what recorders wrote. It ignores a truncated last line, whose writer was killed; any
// other unreadable line is an error.
func ReadEvents(r io.Reader) ([]Event, error) { return readLines[Event](r) }

// readLines reads whole lines, each a JSON value.
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

// Finished counts the acquisitions whose holder recorded the end: a release, or a loss. A holder that was
// killed has not finished.
func Finished(events []Event) int {
	count := 0
	for _, e := range events {
		if e.Kind == Releasing || e.Kind == Lost {
			count++
		}
	}
	return count
}

// SelfOn is the identity of this process as if it ran on the host of that name: to all others it looks like
// a process on another host. With "" it is the real one.
func SelfOn(host string) (process.Identity, error) {
	self, err := process.Self()
	if host != "" {
		self.Host, self.Boot, self.Machine = host, "boot of "+host, "machine of "+host
	}
	return self, err
}
