package remote

import (
	"context"
	"time"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// Home is the source that a lock belongs to. A source that embeds a Member is a Home.
type Home interface {
	CheckName(name string) error
	Self() process.Identity
	Broke(r source.Record, why string) []source.Event
	Record(ctx context.Context, events []source.Event) error
	Named(ctx context.Context, op, name string, err error) error
}

// Lock is what an author implements for observers of a lock. Errors name the step.
type Lock interface {
	// See observes the lock at one instant, with one request.
	See(ctx context.Context) (Seen, error)
	// Remove frees exactly the lock that was seen; with still only if there was no heartbeat since.
	// It leaves the lock's token as a mark, by which its holder recognises that the lock was broken
	// (Freed.Marked).
	Remove(ctx context.Context, seen Seen, still bool) (Freed, error)
}

// Seen is one observation of a lock. The zero value is a free lock.
type Seen struct {
	Held   bool
	Record source.Record // of the holder
	Sign   Sign          // of the last heartbeat
	// Lease is process.Gone if the server expires entries by itself, and found no heartbeat for at
	// least the TTL. For servers that do not expire entries it is process.Unknown, and heartbeats
	// are watched.
	Lease process.Life
	// Age and Silence are the times since the acquisition and the last heartbeat by the server's
	// clock, or source.Unknown. OneClock means that this clock has dated both, so that they can be
	// trusted.
	Age, Silence time.Duration
	OneClock     bool
	// Ours means that the holder is an earlier attempt of this contender, whose reply was lost.
	Ours bool
	// Waiter is the first waiter, nil if there is none or if it is this contender.
	Waiter *Waiter
	entry  *Entry           // the entry of a table's lock
	token  string           // as stored
	at     boottime.Instant // the end of the request, which favours the holder
}

// Waiter is the waiter that is next for a lock.
type Waiter struct {
	ID     string // of its ticket
	Record source.Record
	Why    string                // why others have to wait for it, "" for the usual reason
	Leave  func(context.Context) // removes its ticket, because it is dead
}

// Freed is the outcome of a request to free a lock.
type Freed struct {
	Done   bool // this request freed it
	Held   bool // it is still held: there was another heartbeat
	Marked bool // it is gone, and the mark of the last broken lock has its token
	Doubt  bool // an earlier try, whose reply was lost, may have freed it
}

// Observer observes one lock, and breaks it.
type Observer struct {
	Witness
	Seen  Seen // of the last look
	home  Home
	lock  Lock
	usual time.Duration // duration of the fastest request, 0 before the first
}

// NewObserver returns an observer without observations. The error is source.ErrInvalid for a bad
// name.
func NewObserver(home Home, lock Lock, name string, policy source.StalePolicy) (*Observer, error) {
	return &Observer{Witness: NewWitness(home.Self(), name, policy), home: home, lock: lock}, home.CheckName(name)
}

// Look implements source.Observer.
func (o *Observer) Look(ctx context.Context) (source.Observation, error) {
	if err := o.ask(ctx); err != nil {
		return source.Observation{}, err
	}
	return o.sight(), nil
}

func (o *Observer) ask(ctx context.Context) error {
	start := boottime.Now()
	seen, err := o.lock.See(ctx)
	if err != nil {
		o.Watch.Interrupt()
		return err
	}
	o.note(start, seen)
	return nil
}

// shortestGap is how late a sample may be on a loaded machine.
const shortestGap = 500 * time.Millisecond

// note records an observation whose request was begun at start. A sample may take any time, because
// it only counts up to its start. The allowed gap between samples has room for a waiter's attempt,
// and for a request of the server's clock; each takes as long as the fastest request, but at most a
// quarter of the TTL is allowed for one.
func (o *Observer) note(start boottime.Instant, seen Seen) {
	now := boottime.Now()
	if took := now.Since(start); o.usual == 0 || took < o.usual {
		o.usual = took
	}
	if seen.Sign != o.Seen.Sign { // Break requires that the last look called the lock dead
		o.Assessment = source.Assessment{}
	}
	o.Seen = seen
	o.Seen.at = now
	if !seen.Held || seen.Lease == process.Alive {
		o.Free()
	}
	if o.Record = seen.Record; seen.Held && seen.Lease != process.Alive {
		distance := min(o.usual, o.Record.TTL/4)
		o.Watch.Add(seen.Sign, start, now, source.WatchLimits{Gap: max(o.Record.Heartbeat, shortestGap) + 3*distance})
	}
}

// sight assesses the last observation, with the time that has passed since.
func (o *Observer) sight() source.Observation {
	if !o.Seen.Held {
		return o.Free()
	}
	since, e := o.Seen.at.Elapsed(), o.Evidence()
	e.Silence = goneOn(o.Seen.Silence, since)
	if o.Seen.Lease == process.Gone {
		silent := o.Record.TTL + o.Watch.Unchanged()
		e.Silence, e.Unchanged, e.Watched = silent, silent, silent
	}
	seen := o.Conclude(e, func(e source.Evidence) source.Assessment { return Judge(e, o.Seen.OneClock) })
	seen.Age, seen.Silence = reported(goneOn(o.Seen.Age, since)), reported(seen.Silence)
	return seen
}

// goneOn adds the time that has passed since a reading of the server's clock. A negative time stays
// as it is: that clock was set back.
func goneOn(passed, since time.Duration) time.Duration {
	if passed > 0 {
		passed += since
	}
	return passed
}

// reported is a time as it is reported.
func reported(passed time.Duration) time.Duration {
	if passed == source.Unknown {
		return source.Unknown
	}
	return max(passed, 0)
}

// Break implements source.Observer. It never breaks the lock of another holder, or of one that has
// sent a heartbeat since.
func (o *Observer) Break(ctx context.Context) error {
	if o.Assessment.State != source.StateDead {
		return source.ErrHeld
	}
	dead, why := o.Record, o.Assessment.Why
	broken, err := o.remove(ctx, true)
	if broken {
		// A failure to write the history does not change the outcome.
		_ = o.home.Record(ctx, o.home.Broke(dead, why))
	}
	return err
}

// Force implements source.Observer. It leaves the history to its caller, which knows why.
func (o *Observer) Force(ctx context.Context) error {
	if !o.Seen.Held {
		return source.ErrFree
	}
	_, err := o.remove(ctx, false)
	return err
}

// remove frees the lock that was seen last. If the reply to an earlier try was lost and the lock is
// gone, that try has broken it if its mark has the token.
func (o *Observer) remove(ctx context.Context, still bool) (broken bool, err error) {
	freed, err := o.lock.Remove(ctx, o.Seen, still)
	if err == nil && !freed.Done && freed.Held {
		err = source.ErrHeld
	}
	return err == nil && (freed.Done || freed.Doubt && freed.Marked), err
}
