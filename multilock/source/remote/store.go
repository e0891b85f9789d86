package remote

import (
	"context"
	"time"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/process"
)

// Store is a table on a server: entries with a key and a value, in the order of their keys. A [Table]
// makes of it all that a source keeps: locks, lines of waiters, results, lists, a history, registers.
//
// A transaction takes effect as a whole or not at all, and after every transaction that was acknowledged
// before it began. All its conditions but IfExists and IfFirst are about one entry; a store that compares no
// more than one in a step may look at the others just before. A store whose transactions are of one
// object keeps what else is written inside of that object until it is in its place.
type Store interface {
	// Apply carries out a transaction. The request may be sent several times, and arrive late.
	Apply(ctx context.Context, t Txn) (Applied, error)
	// Feed reads the entries below a key, from one on, and then each that is created.
	Feed(below, from string) Feed
	// Removals subscribes to the removal of the entry, or of those below a key; news is nil if the
	// store reports none.
	Removals(key string, below bool) (news <-chan struct{}, stop func())
	// Pulse is a heartbeat for the entries of one contender, which lasts for a TTL.
	Pulse(ctx context.Context, ttl time.Duration) Pulse
	// Stop ends the pulse of a lock that was removed, by its number, so that the holder learns of it.
	Stop(pulse int64)
	// OpError names the step in which err came up; it returns nil for a nil error.
	OpError(ctx context.Context, op, name string, err error) error
}

// Feed reads a store in batches. It is for one goroutine.
type Feed interface {
	// Next returns entries that it has not returned before; none if there are no more at present.
	Next(ctx context.Context) ([]Entry, error)
	Close() error
}

// Pulse is a contender's heartbeat, and then the holder's. An entry that was put with one counts for
// nothing if it arrives after the pulse has ended.
type Pulse interface {
	// Settle is called after each attempt. gone says that the pulse has ended, so the contender needs
	// another one. The error is ErrAgain if another attempt makes sense at once.
	Settle(ctx context.Context, a Applied, failed error) (gone bool, err error)
	// Since is a moment before the last heartbeat that the server has acknowledged.
	Since() boottime.Instant
	// Await keeps a ticket alive, and calls w.Tell when another attempt makes sense.
	Await(ctx context.Context, w Wait)
	// Beat sends a heartbeat for a lock that is held, in limited time; mine says whether it still is.
	Beat(ctx context.Context, h *TableLease, limit time.Duration) (mine bool, err error)
	// Tainted says that a request that names the pulse may still be carried out.
	Tainted() bool
	// Close ends the waiting, and the pulse. One that is unused may be given to another contender.
	Close(unused bool)
}

// Wait is a contender's place in a line.
type Wait struct {
	Ticket   string        // its key
	Ahead    []string      // the keys that it waits for: the ticket before it, or the lock
	Held     int64         // the revision that created the lock, 0 if it is free
	Revision int64         // as of which it is so
	TTL      time.Duration // that of the ticket
	Tell     func()
}

// Txn is a transaction: if its conditions hold, it makes the one writes, otherwise the others. After
// that it reads.
type Txn struct {
	If         []Cond
	Then, Else []Write
	Show       []Range
	Limit      time.Duration // how long it may take at most, 0 for the usual time
}

// Applied is what became of a transaction.
type Applied struct {
	Done     bool             // the conditions held
	Doubt    bool             // also with an error: an earlier try may have been carried out, or may be later
	Found    [][]Entry        // of each range, in the order of Txn.Show
	Since    boottime.Instant // when the try began that was answered
	Revision int64            // as of which it was read, 0 if the store does not count
}

// first is the first entry of a range, nil if it has none.
func (a Applied) first(i int) *Entry {
	if len(a.Found[i]) == 0 {
		return nil
	}
	return &a.Found[i][0]
}

// Entry is the first entry of a range, zero if it has none.
func (a Applied) Entry(i int) (e Entry) {
	if i < len(a.Found) && len(a.Found[i]) > 0 {
		e = a.Found[i][0]
	}
	return e
}

// Cond compares the entry of a key.
type Cond struct {
	Key    string
	Field  Field
	Number int64
	Value  []byte
	Life   string // of a lock: where its pulse is kept by a store that keeps it apart
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
	IfSilent               // its pulse has ended, or has not beaten since it had Number beats
	IfFirst                // no entry below the key, with a live writer, was created before the revision Number; 0 for none at all
)

// Write puts an entry, or removes it if it has no value.
type Write struct {
	Key    string
	Value  []byte
	Below  bool  // removes all entries whose key begins with this one
	Shared bool  // many write it at the same time: a store may keep several, whose keys begin with this one
	Beat   int64 // only sends a heartbeat for the entry that this revision created
	// Pulse is that of a lock or a ticket. A store that keeps the pulse of a lock apart does that in
	// the entry Life, and removes it with the lock.
	Pulse Pulse
	Life  string
	Tell  string        // the first of the tickets below this key is told of the removal
	Ends  time.Duration // the store may remove the entry that long after; 0 for never
}

// Range selects entries, in the order of their keys unless it says otherwise.
type Range struct {
	Key            string
	Below          bool   // all entries whose key begins with this one
	From           string // leaves out what comes before this key
	Before         int64  // leaves out what was not created before this revision; 0 for nothing
	Limit          int    // at most so many; 0 for all
	Oldest, Newest bool   // in the order of their creation
	Keys           bool   // without the values
	Life           string // of a lock: where its pulse is kept by a store that keeps it apart
	Alive          bool   // without those whose writer is known to be dead
}

// Entry is one of a store's. Each write gives it a larger revision than any write before.
type Entry struct {
	Key              string
	Value            []byte
	Created, Changed int64
	Version          int64 // how often it was written
	// Life is what the server says of a pulse that ends by itself (see Seen.Lease), and Pulse its
	// number. Beats counts the heartbeats where the server does not end any.
	Life         process.Life
	Pulse, Beats int64
	// Age is the time since the entry was created, Silence since it was written or sent a heartbeat:
	// by the server's clock, or source.Unknown. OneClock says that this clock has dated both.
	Age, Silence time.Duration
	OneClock     bool
}

// valueOf is a copy of the value of an entry, nil if there is none.
func valueOf(e *Entry) []byte {
	if e == nil {
		return nil
	}
	return append([]byte{}, e.Value...)
}
