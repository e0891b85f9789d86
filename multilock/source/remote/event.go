package remote

import (
	"encoding/json"
	"iter"
	"slices"
	"time"

	"github.com/multilock/go/multilock/source"
)

// DecodeEvents returns the events of a JSON list since a moment. A list that cannot be decoded has
// no events.
func DecodeEvents(text []byte, since time.Time) []source.Event {
	var events []source.Event
	if json.Unmarshal(text, &events) != nil {
		return nil
	}
	return slices.DeleteFunc(events, func(e source.Event) bool { return e.Time.Before(since) })
}

// EventList is a list of events that are stored together.
type EventList struct {
	Text []byte // as JSON
	Last time.Time
	n    int
}

// EncodeEvents splits events into lists of at most a number of events, and a size in bytes.
func EncodeEvents(events []source.Event, most, size int) (lists []EventList, err error) {
	for _, e := range events {
		text, err := json.Marshal(e.Bounded())
		if err != nil {
			return nil, err
		}
		last := len(lists) - 1
		if last < 0 || lists[last].n == most || len(lists[last].Text)+len(text) > size {
			lists = append(lists, EventList{Text: []byte("[]"), Last: time.UnixMilli(0)})
			last++
		}
		l := &lists[last]
		if l.Text = l.Text[:len(l.Text)-1]; l.n > 0 {
			l.Text = append(l.Text, ',')
		}
		l.Text = append(append(l.Text, text...), ']')
		l.n++
		l.Last = Latest([]source.Event{{Time: l.Last}, e})
	}
	return lists, nil
}

// Latest returns the time of the latest event, 1970 if there is no event.
func Latest(events []source.Event) time.Time {
	last := time.UnixMilli(0)
	for _, e := range events {
		if e.Time.After(last) {
			last = e.Time
		}
	}
	return last
}

// unordered is the size of the window for sorting: hosts write slightly out of order.
const unordered = 256

// InOrder sorts a history that is read in parts, which are nearly in the order of time. next
// returns no events at the end.
func InOrder(next func() ([]source.Event, error)) iter.Seq2[source.Event, error] {
	return func(yield func(source.Event, error) bool) {
		var known []source.Event
		for kept := unordered; kept > 0; {
			events, err := next()
			if err != nil {
				yield(source.Event{}, err)
				return
			}
			if len(events) == 0 {
				kept = 0
			}
			known = append(known, events...)
			slices.SortStableFunc(known, func(a, b source.Event) int { return a.Time.Compare(b.Time) })
			for ; len(known) > kept; known = known[1:] {
				if !yield(known[0], nil) {
					return
				}
			}
		}
	}
}
