package source

import (
	"context"
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

// Changes is a Ledger that tells cheaply whether its results have changed.
type Changes interface {
	Ledger
	// Revision is a stamp of all results together, got with one request. As long as it
	// stays the same no result was added, replaced or removed, but for what happened
	// within two seconds after it was first seen: a source's clock has ticks.
	Revision(ctx context.Context) (string, error)
}

// Chronicle is a Source that keeps a history of its locks.
type Chronicle interface {
	Source
	// History returns the events since a moment, by the clocks of the hosts that
	// wrote them. What could not be written is not in it.
	History(ctx context.Context, since time.Time) ([]Event, error)
}

// Journal is a Chronicle that many write to at the same time, and follow.
type Journal interface {
	Chronicle
	// Record adds events to the history, at the price of one write for those of a day.
	Record(ctx context.Context, events []Event) error
	// Follow prepares to read the history from a moment on, as Chronicle.History
	// does, and then what is added to it.
	Follow(since time.Time) Follower
}

// Follower reads a history that grows. It is for one goroutine.
type Follower interface {
	// Next returns events that it has not returned before, of each writer in order,
	// and a limited number at a time; none if there are no more at present.
	Next(ctx context.Context) ([]Event, error)
	// Close ends the reading.
	Close() error
}

// ManifestStore is a Source that keeps a manifest of its group: what all hosts must
// agree about before they work in it.
type ManifestStore interface {
	Source
	// Publish makes manifest the group's if it has none, in one step. It returns the
	// one that the group has then: the caller's, or another host's.
	Publish(ctx context.Context, manifest []byte) ([]byte, error)
	// Retract removes the group's manifest. That there is none is no error.
	Retract(ctx context.Context) error
}
