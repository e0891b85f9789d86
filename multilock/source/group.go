package source

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"
)

// Group is a Source whose locks can be asked about as a whole, at the price of
// one request however many there are.
type Group interface {
	Source
	// Vacant says whether nothing in the group was held at one instant of the call.
	// The answer is the source's own and never a cache's. What was held before and
	// what is held a moment later it does not tell.
	Vacant(ctx context.Context) (bool, error)
	// Wake subscribes to the news that a lock of the group may have become free, as
	// far as this source hears of it without asking. The channel is nil if it cannot;
	// stop ends the subscription. News may be missed: it only shortens a wait.
	Wake() (news <-chan struct{}, stop func())
	// Tidy removes what a crash left of a lock that nobody holds, where that keeps
	// the group from being vacant though anybody may take the lock. It never
	// touches a lock.
	Tidy(ctx context.Context, name string) error
}

// Known is a Source that can tell whether its group was ever used.
type Known interface {
	Source
	// Known says whether anything was ever held or recorded in the group, whoever did it and
	// whatever is left of it. A name that nobody has used is mostly a mistake.
	Known(ctx context.Context) (bool, error)
}

// Retention is a Journal of which old parts can be removed.
type Retention interface {
	Journal
	// Expired names the parts in which nothing is younger than keep, by the source's
	// clock.
	Expired(ctx context.Context, keep time.Duration) ([]string, error)
	// Expire removes them, and names those that it has removed, also with an error.
	Expire(ctx context.Context, keep time.Duration) ([]string, error)
}

// Journal is a Source that keeps a history of its locks and jobs. Many hosts write to it at the
// same time, and follow it.
type Journal interface {
	Source
	// Record adds events to the history, with one write for those of a day.
	Record(ctx context.Context, events []Event) error
	// History returns the events since a moment, by the clocks of the hosts that wrote them,
	// oldest first. Events that could not be written are missing. After a *LeftOutError more
	// events follow; any other error is the end.
	History(ctx context.Context, since time.Time) iter.Seq2[Event, error]
	// Follow prepares to read the history from a moment on, as History does, and then what is
	// added to it.
	Follow(since time.Time) Follower
}

// Follower reads a history that grows. It is for one goroutine.
type Follower interface {
	// Next returns events that it has not returned before, of each writer in order,
	// and a limited number at a time; none if there are no more at present. An error that
	// is a *LeftOutError comes once, and without events; the next call reads on.
	Next(ctx context.Context) ([]Event, error)
	// Close ends the reading.
	Close() error
}

// LeftOutError tells of a part of a history that cannot be read, or is none. The rest can.
type LeftOutError struct {
	Part string // a file's path
	Why  error
}

func (e *LeftOutError) Error() string {
	return "of the history " + e.Part + " is left out: " + e.Why.Error()
}

// Unwrap is why.
func (e *LeftOutError) Unwrap() error { return e.Why }

// Collect reads a history as a whole. What is left out of it is the error then, if nothing
// else is, and the events are the rest.
func Collect(history iter.Seq2[Event, error]) (events []Event, err error) {
	for e, failed := range history {
		switch {
		case failed == nil:
			events = append(events, e)
		case !errors.As(failed, new(*LeftOutError)):
			return nil, failed
		default:
			err = errors.Join(err, failed)
		}
	}
	return events, err
}

// Retell tells a history that had to be read as a whole.
func Retell(read func() ([]Event, error)) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		events, err := read()
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
		if err != nil {
			yield(Event{}, err)
		}
	}
}

// ManifestStore is a Source that keeps a manifest of its group: what all hosts must
// agree about before they work in it.
type ManifestStore interface {
	Source
	// Publish makes manifest the group's if it has none, in one step. It returns the
	// one that the group has then: the caller's, or another host's, of which only so much
	// need be told that they are seen to differ.
	Publish(ctx context.Context, manifest []byte) ([]byte, error)
	// Retract removes the group's manifest. That there is none is no error.
	Retract(ctx context.Context) error
	// OpenManifest opens the group's manifest, with all that continues it. The error is
	// fs.ErrNotExist if it has none.
	OpenManifest(ctx context.Context) (io.ReadCloser, error)
}

// ManifestGrower is a ManifestStore whose manifest can be continued by sections. What is there
// stays as it is; Retract removes all of it.
type ManifestGrower interface {
	ManifestStore
	// Sections reads the group's manifest, and what continues it, up to a number of bytes
	// in all. The error is fs.ErrNotExist if it has none.
	Sections(ctx context.Context, most int) ([][]byte, error)
	// Continue places a section behind the known ones, in one step, if the group's manifest
	// consists of them. It is false if the manifest does not begin with all of that
	// afterwards, because others have changed it.
	Continue(ctx context.Context, known [][]byte, more []byte) (bool, error)
}

// GroupLister is a Source in a place where there may be other groups.
type GroupLister interface {
	Source
	// Groups lists the groups of the place that are known to have been used, also if nothing
	// is held there, sorted by their names.
	Groups(ctx context.Context) ([]GroupSummary, error)
}

// GroupSummary is a group as one sees it from outside.
type GroupSummary struct {
	Name string `json:"group"`
	// Held is how many locks are, or may be, held there.
	Held int `json:"held"`
}
