package source

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"

	"github.com/multilock/go/multilock/process"
)

// Group is a Source that can check all its locks with one request.
type Group interface {
	Source
	// Empty reports whether no lock of the group was held at one instant of the call. The reply
	// comes from the source and never from a cache. It does not cover the time before or after that
	// instant.
	Empty(ctx context.Context) (bool, error)
	// Wake subscribes to notifications that a lock of the group may have become free. The channel
	// is nil if the source has none; stop ends the subscription. Notifications may be lost: they
	// only shorten a wait.
	Wake() (news <-chan struct{}, stop func())
	// Tidy removes what a crash left of a free lock, where that keeps Empty false though the lock
	// can be acquired. It never touches a lock.
	Tidy(ctx context.Context, name string) error
}

// Known is a Source that can report whether its group was ever used.
type Known interface {
	Source
	// Known reports whether any lock was ever held, or anything recorded, in the group. A group
	// that was never used usually is a misspelled name.
	Known(ctx context.Context) (bool, error)
}

// Retention is a Journal that can remove old parts of its history.
type Retention interface {
	Journal
	// Expired lists the parts in which nothing is younger than keep, by the source's clock.
	Expired(ctx context.Context, keep time.Duration) ([]string, error)
	// Expire removes those parts. It returns the removed ones, also with an error.
	Expire(ctx context.Context, keep time.Duration) ([]string, error)
}

// Journal is a Source with a history of its locks and jobs. Many hosts write to it and follow it
// concurrently.
type Journal interface {
	Source
	// Record adds events to the history, with one write for those of a day.
	Record(ctx context.Context, events []Event) error
	// History returns the events since a moment, by the clocks of the hosts that wrote them,
	// oldest first. Events that could not be written are missing. After a *LeftOutError more
	// events follow; any other error is the end.
	History(ctx context.Context, since time.Time) iter.Seq2[Event, error]
	// Follow returns a reader of the history from a moment on, as History does, and then of added
	// events.
	Follow(since time.Time) Follower
}

// RecentJournal is a Journal that can be read from its end.
type RecentJournal interface {
	Journal
	// Latest is History in the opposite order: the latest event comes first.
	Latest(ctx context.Context, since time.Time) iter.Seq2[Event, error]
}

// Follower reads a growing history. It is for one goroutine.
type Follower interface {
	// Next returns events that it has not returned before, in order for each writer, and a limited
	// number at a time; none if there are no more at present. A *LeftOutError is returned once per
	// part, without events; the next call continues.
	Next(ctx context.Context) ([]Event, error)
	// Close stops reading.
	Close() error
}

// LeftOutError means that a part of a history cannot be read, or is not a history. The rest can be
// read.
type LeftOutError struct {
	Part string // a file's path
	Why  error
}

func (e *LeftOutError) Error() string {
	return "of the history " + e.Part + " is left out: " + e.Why.Error()
}

// Unwrap returns the cause.
func (e *LeftOutError) Unwrap() error { return e.Why }

// Collect reads a whole history. If parts were left out, it returns the remaining events with the
// joined errors.
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

// ManifestStore is a Source that stores a manifest of its group: what all hosts must agree about
// before they work in it.
type ManifestStore interface {
	Source
	// Publish stores the manifest in one step if the group has none. It returns the manifest that
	// the group has then: the caller's, or another host's, of which the beginning is sufficient if
	// it shows the difference.
	Publish(ctx context.Context, manifest []byte) ([]byte, error)
	// Retract removes the group's manifest. It is no error if there is none.
	Retract(ctx context.Context) error
	// OpenManifest opens the group's manifest with its continuations, starting at the last section
	// that replaces the others, if any. The error is fs.ErrNotExist if there is no manifest.
	OpenManifest(ctx context.Context) (io.ReadCloser, error)
}

// Whole is how a section begins that replaces the manifest and all sections before it. Publish then
// returns the beginning of that section.
const Whole = "#whole"

// ManifestGrower is a ManifestStore whose manifest can be extended by sections. Existing sections
// do not change; Retract removes all of them.
type ManifestGrower interface {
	ManifestStore
	// Sections reads the group's manifest and its continuations, up to a number of bytes in total.
	// The error is fs.ErrNotExist if the group has none.
	Sections(ctx context.Context, most int) ([][]byte, error)
	// Continue appends a section in one step, if the group's manifest consists of the known
	// sections. It returns false if another host changed the manifest, so that it does not begin
	// with all of known and more afterwards.
	Continue(ctx context.Context, known [][]byte, more []byte) (bool, error)
	// Grown reports whether there are more than this number of sections.
	Grown(ctx context.Context, known int) (bool, error)
	// OnlyOurs reports whether only root and this user can have written the manifest, so that its
	// commands may be executed.
	OnlyOurs() bool
}

// GroupLister is a Source whose location may have other groups.
type GroupLister interface {
	Source
	// Groups lists the groups that are known to have been used, also those without held locks,
	// sorted by name.
	Groups(ctx context.Context) ([]GroupSummary, error)
}

// JobObserver is a Source whose observers read a job's process groups only on the job's host, where
// they prove something. Record.Groups is empty elsewhere.
type JobObserver interface {
	Source
	// JobGroups returns the process groups that are recorded for the jobs under a lock: none if the
	// lock is free, or none are recorded. Jobs that have ended may be among them.
	JobGroups(ctx context.Context, name string) ([]process.Group, error)
}

// GroupSummary is an entry of GroupLister.Groups.
type GroupSummary struct {
	Name string `json:"group"`
	// Held is the number of locks that are, or may be, held.
	Held int `json:"locks_held"`
}
