package remote

import (
	"encoding/json"
	"iter"
	"slices"
	"time"

	"github.com/multilock/go/multilock/source"
)

// DecodeEvents are the events of a JSON list since a moment. A list that cannot be understood has
// none.
func DecodeEvents(text []byte, since time.Time) []source.Event {
	var events []source.Event
	if json.Unmarshal(text, &events) != nil {
		return nil
	}
	return slices.DeleteFunc(events, func(e source.Event) bool { return e.Time.Before(since) })
}

// EventList is some events that are stored together.
type EventList struct {
	Text []byte // as JSON
	Last time.Time
	n    int
}

// EncodeEvents gives events in lists of a number at most, and fewer if they are longer than a size.
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

// Latest is the time of the last of some events, 1970 if there are none.
func Latest(events []source.Event) time.Time {
	last := time.UnixMilli(0)
	for _, e := range events {
		if e.Time.After(last) {
			last = e.Time
		}
	}
	return last
}

// unordered is how many events are kept back, because hosts write a little out of order.
const unordered = 256

// InOrder tells a history that is read in parts, which are nearly in the order of time: next gives
// no events once there are no more.
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
