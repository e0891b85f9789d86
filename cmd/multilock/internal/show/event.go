package show

import (
	"time"

	"github.com/multilock/go/multilock/source"
)

// Event is a history event in --json: as stored, except that durations are seconds and times UTC.
type Event struct {
	source.Event
	Time   time.Time `json:"time"`
	Tick   time.Time `json:"tick,omitzero"`
	Waited float64   `json:"waited_seconds,omitempty"`
	Held   float64   `json:"held_seconds,omitempty"`
	// These hide the stored durations of the same JSON names.
	WaitedNS *struct{} `json:"waited_ns,omitempty"`
	HeldNS   *struct{} `json:"held_ns,omitempty"`
}

// EventOf makes the JSON form of an event.
func EventOf(e source.Event) Event {
	return Event{Event: e, Time: e.Time.UTC(), Tick: e.Tick.UTC(), Waited: e.Waited.Seconds(), Held: e.Held.Seconds()}
}

// Leftover is what a crash left behind, in --json.
type Leftover struct {
	source.Leftover
	Age   float64   `json:"age_seconds"`
	AgeNS *struct{} `json:"age_ns,omitempty"`
}

// LeftoversOf makes the JSON form of leftovers.
func LeftoversOf(found []source.Leftover) []Leftover {
	views := make([]Leftover, len(found))
	for i, l := range found {
		views[i] = Leftover{Leftover: l, Age: l.Age.Seconds()}
	}
	return views
}
