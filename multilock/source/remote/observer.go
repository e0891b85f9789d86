package remote

import (
	"context"
	"time"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// Home is the source that a lock is of. Who embeds a Member is one.
type Home interface {
	CheckName(name string) error
	Self() process.Identity
	Broke(r source.Record, why string) []source.Event
	Record(ctx context.Context, events []source.Event) error
	Named(ctx context.Context, op, name string, err error) error
}

// Lock is what an author writes for who looks at a lock. Errors name the step.
type Lock interface {
	// See is one request, which shows the lock as it is at one instant.
	See(ctx context.Context) (Seen, error)
	// Remove frees the lock that was seen, and no other; if still, only if it has given no sign of
	// life since. It leaves the lock's token, so that its holder learns of it (Freed.Marked).
	Remove(ctx context.Context, seen Seen, still bool) (Freed, error)
}

// Seen is what a request has shown of a lock. The zero value is a lock that nobody holds.
type Seen struct {
	Held   bool
	Record source.Record // of who holds it
	Sign   Sign          // his last heartbeat
	// Lease is what a server says of it that ends by itself what nobody keeps alive: process.Gone if there
	// was none for the TTL at least. Of other servers it is process.Unknown, and the signs are watched.
	Lease process.Life
	// Age and Silence are the times since the acquisition and the last heartbeat by the server's
	// clock, or source.Unknown. OneClock says that it can be believed: the clock which has dated them.
	Age, Silence time.Duration
	OneClock     bool
	// Ours says that the holder is an attempt of this very contender's, whose answer was lost.
	Ours bool
	// Waiter is the first who waits for it, nil if nobody does, or this contender is the first.
	Waiter *Waiter
	entry  *Entry           // that of a table's lock
	token  string           // as it stands there
	at     boottime.Instant // when it was so at the latest: what is doubtful counts for the holder
}

// Waiter is who waits for a lock, and comes first.
type Waiter struct {
	ID     string // of his place in the line
	Record source.Record
	Why    string                // a contender has to wait for him, "" for the usual reason
	Leave  func(context.Context) // takes him out of the line: he is dead
}

// Freed is what became of a lock that was to be freed.
type Freed struct {
	Done   bool // it was freed by this request
	Held   bool // it is still there: its holder has shown life
	Marked bool // it is not, and the last who broke a lock of the name has left this one's token
	Doubt  bool // an earlier try may have freed it, without an answer
}

// Observer watches one lock, and breaks it.
type Observer struct {
	Witness
	Seen  Seen // of the last look
	home  Home
	lock  Lock
	usual time.Duration // what the quickest look took, 0 before the first
}

// NewObserver is one that has seen nothing yet. The error is source.ErrInvalid for a bad name.
func NewObserver(home Home, lock Lock, name string, policy source.StalePolicy) (*Observer, error) {
	return &Observer{Witness: NewWitness(home.Self(), name, policy), home: home, lock: lock}, home.CheckName(name)
}

// Look implements source.Observer.
func (o *Observer) Look(ctx context.Context) (source.Sighting, error) {
	if err := o.ask(ctx); err != nil {
		return source.Sighting{}, err
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

// note takes in what a request has shown that was begun at start. Samples may take as long as they
// like: an answer counts up to when it was asked for. But between two of them a waiter makes an attempt, and
// asks for the server's clock, perhaps; each takes as long as it is far to the server. What takes half a
// TTL is wrong in any case.
func (o *Observer) note(start boottime.Instant, seen Seen) {
	now := boottime.Now()
	if took := now.Since(start); o.usual == 0 || took < o.usual {
		o.usual = took
	}
	if seen.Sign != o.Seen.Sign { // Break is for what the last look has called dead
		o.Verdict = source.Verdict{}
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

// sight is what was seen last, as far as it has gone on since.
func (o *Observer) sight() source.Sighting {
	if !o.Seen.Held {
		return o.Free()
	}
	since, e := o.Seen.at.Elapsed(), o.Evidence()
	e.Silence = goneOn(o.Seen.Silence, since)
	if o.Seen.Lease == process.Gone {
		silent := o.Record.TTL + o.Watch.Unchanged()
		e.Silence, e.Unchanged, e.Watched = silent, silent, silent
	}
	seen := o.Conclude(e, func(e source.Evidence) source.Verdict { return Judge(e, o.Seen.OneClock) })
	seen.Age, seen.Silence = told(goneOn(o.Seen.Age, since)), told(seen.Silence)
	return seen
}

// goneOn is a time by the server's clock that has gone on since. One that is negative, because that
// clock was set back, stays as it was.
func goneOn(passed, since time.Duration) time.Duration {
	if passed > 0 {
		passed += since
	}
	return passed
}

// told is a time as people are told it.
func told(passed time.Duration) time.Duration {
	if passed == source.Unknown {
		return source.Unknown
	}
	return max(passed, 0)
}

// Break implements source.Observer: another holder, or one that has shown life since, is out of reach.
func (o *Observer) Break(ctx context.Context) error {
	if o.Verdict.State != source.StateDead {
		return source.ErrHeld
	}
	dead, why := o.Record, o.Verdict.Why
	broken, err := o.remove(ctx, true)
	if broken {
		// That the history could not be written is no reason to say anything else.
		_ = o.home.Record(ctx, o.home.Broke(dead, why))
	}
	return err
}

// Force implements source.Observer. It leaves the history to its caller, who knows why.
func (o *Observer) Force(ctx context.Context) error {
	if !o.Seen.Held {
		return source.ErrFree
	}
	_, err := o.remove(ctx, false)
	return err
}

// remove frees the lock that was seen last. Who finds nothing to be freed, after an answer that was
// lost, has done it, if the token shows that somebody has.
func (o *Observer) remove(ctx context.Context, still bool) (broken bool, err error) {
	freed, err := o.lock.Remove(ctx, o.Seen, still)
	if err == nil && !freed.Done && freed.Held {
		err = source.ErrHeld
	}
	return err == nil && (freed.Done || freed.Doubt && freed.Marked), err
}
