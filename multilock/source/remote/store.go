package remote

import (
	"context"
	"time"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/process"
)

// Store is a table on a server: entries with a key and a value, in the order of their keys. A
// [Table] uses it for everything that a source stores: locks, queues of waiters, results,
// manifests, a history, registers.
//
// A transaction takes effect as a whole or not at all, and after every transaction that was
// acknowledged before it began. All its conditions but IfExists and IfFirst are about one entry; a
// store that can only compare one in a step may check the others just before. A store whose
// transactions are limited to one object keeps the other writes inside of that object until they
// are in place.
type Store interface {
	// Apply carries out a transaction. The request may be sent several times, and arrive late.
	Apply(ctx context.Context, t Txn) (Applied, error)
	// Feed reads the entries below a key, starting at another key, and then each new entry.
	Feed(below, from string) Feed
	// Removals subscribes to the removal of the entry, or of those below a key; news is nil if the
	// store does not support it.
	Removals(key string, below bool) (news <-chan struct{}, stop func())
	// Pulse returns a heartbeat with a TTL for the entries of one contender.
	Pulse(ctx context.Context, ttl time.Duration) Pulse
	// Stop ends the pulse of a removed lock, by its number, to notify the holder.
	Stop(pulse int64)
	// OpError names the step that failed; it returns nil for a nil error.
	OpError(ctx context.Context, op, name string, err error) error
}

// Feed reads a store in batches. It is for one goroutine.
type Feed interface {
	// Next returns entries that it has not returned before; none if there are no more at present.
	Next(ctx context.Context) ([]Entry, error)
	Close() error
}

// Pulse is a contender's heartbeat, and then the holder's. An entry that was written with a pulse
// is ignored if it arrives after the pulse has ended.
type Pulse interface {
	// Settle is called after each attempt. gone means that the pulse has ended, so the contender
	// needs another one. The error is ErrAgain if another attempt makes sense at once.
	Settle(ctx context.Context, a Applied, failed error) (gone bool, err error)
	// Since is a moment before the last heartbeat that the server has acknowledged.
	Since() boottime.Instant
	// Await keeps a ticket alive, and calls w.Tell when another attempt makes sense.
	Await(ctx context.Context, w Wait)
	// Beat sends a heartbeat for a held lock within a time limit; mine reports whether it is still
	// held.
	Beat(ctx context.Context, h *TableLease, limit time.Duration) (mine bool, err error)
	// Tainted reports whether a pending request that names the pulse may still take effect.
	Tainted() bool
	// Close ends the waiting, and the pulse. An unused pulse may be reused for another contender.
	Close(unused bool)
}

// Wait is a contender's position in a queue.
type Wait struct {
	Ticket   string        // the key of its ticket
	Ahead    []string      // the keys that it waits for: the ticket ahead, or the lock
	Held     int64         // the revision that created the lock, 0 if it is free
	Revision int64         // as of which this was read
	TTL      time.Duration // of the ticket
	Tell     func()
}

// Txn is a transaction: if its conditions hold, it makes the writes of Then, otherwise those of
// Else. Afterwards it reads Show.
type Txn struct {
	If         []Cond
	Then, Else []Write
	Show       []Range
	Limit      time.Duration // time limit, 0 for the usual one
}

// Applied is the outcome of a transaction.
type Applied struct {
	Done     bool             // the conditions held
	Doubt    bool             // also with an error: an earlier try may have taken effect, or may still do so
	Found    [][]Entry        // of each range, in the order of Txn.Show
	Since    boottime.Instant // start of the try that was answered
	Revision int64            // as of which Show was read, 0 if the store has none
}

// first returns the first entry of a range, nil if it has none.
func (a Applied) first(i int) *Entry {
	if len(a.Found[i]) == 0 {
		return nil
	}
	return &a.Found[i][0]
}

// Entry returns the first entry of a range, zero if it has none.
func (a Applied) Entry(i int) (e Entry) {
	if i < len(a.Found) && len(a.Found[i]) > 0 {
		e = a.Found[i][0]
	}
	return e
}

// Cond is a condition on the entry of a key.
type Cond struct {
	Key    string
	Field  Field
	Number int64
	Value  []byte
	Life   string // key of a lock's pulse, for a store that keeps it in a separate entry
}

// Field is what a condition compares.
type Field int

// The fields of conditions.
const (
	IfAbsent  Field = iota // there is no such entry
	IfExists               // there is one
	IfCreated              // the revision that created it is Number
	IfChanged              // the revision that changed it last is Number
	IfValue                // its value is Value
	IfSilent               // its pulse has ended, or has sent no heartbeat since it had sent Number
	IfFirst                // no entry below the key, with a live writer, was created before the revision Number; 0 for none at all
)

// Write puts an entry, or removes it if it has no value.
type Write struct {
	Key    string
	Value  []byte
	Below  bool  // removes all entries whose key begins with this one
	Shared bool  // has concurrent writers: a store may keep several entries with this prefix
	Beat   int64 // only sends a heartbeat for the entry that this revision created
	// Pulse is the pulse of a lock or a ticket. A store that keeps the pulse of a lock in a
	// separate entry uses the key Life, and removes it with the lock.
	Pulse Pulse
	Life  string
	Tell  string        // notify the first ticket below this key of the removal
	Ends  time.Duration // the store may remove the entry after that time; 0 for never
}

// Range selects entries, in the order of their keys by default.
type Range struct {
	Key            string
	Below          bool   // all entries whose key begins with this one
	From           string // only entries from this key on
	Before         int64  // only entries that were created before this revision; 0 for all
	Limit          int    // maximum number; 0 for all
	Oldest, Newest bool   // in the order of creation
	Keys           bool   // without the values
	Life           string // key of a lock's pulse, for a store that keeps it in a separate entry
	Alive          bool   // without those whose writer is known to be dead
}

// Entry is an entry of a store. Each write gives it a larger revision than any write before.
type Entry struct {
	Key              string
	Value            []byte
	Created, Changed int64
	Version          int64 // how often it was written
	// Life is what the server knows of a pulse that expires (see Seen.Lease), and Pulse its number.
	// Beats counts the heartbeats where the server expires nothing.
	Life         process.Life
	Pulse, Beats int64
	// Age is the time since the entry was created, Silence since it was written or sent a
	// heartbeat: by the server's clock, or source.Unknown. OneClock means that the same clock dated
	// both.
	Age, Silence time.Duration
	OneClock     bool
}

// valueOf returns a copy of the value of an entry, nil if there is none.
func valueOf(e *Entry) []byte {
	if e == nil {
		return nil
	}
	return append([]byte{}, e.Value...)
}
