package remote

import (
	"context"
	"errors"
	"time"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// Attempts is what an author writes for who wants a lock.
type Attempts interface {
	// See also says what is the contender's own: Seen.Ours, and Seen.Waiter.
	Lock
	// Attempt makes one. The error is source.ErrHeld, or ErrAgain if another one makes sense at once,
	// or Failed. What it has seen of the lock it may tell (Note).
	Attempt(ctx context.Context) (source.Lease, error)
}

// Contender is one contender's attempts at one lock.
type Contender struct {
	*Observer
	Claim    source.Claim
	News     *News // what it hears while it waits, nil if it does not, or where nobody tells
	attempts Attempts
	fresh    bool // what was seen last an attempt has shown
}

// NewContender is one that has made no attempt yet. The error is source.ErrInvalid for a bad name.
func NewContender(home Home, attempts Attempts, name string, claim source.Claim, policy source.StalePolicy) (*Contender, error) {
	o, err := NewObserver(home, attempts, name, policy)
	return &Contender{Observer: o, Claim: claim.By(home.Self()), attempts: attempts}, err
}

// Wake implements source.Contender where nobody tells.
func (c *Contender) Wake() <-chan struct{} { return nil }

// Try implements source.Contender. While it waits and hears nothing, it asks nobody.
func (c *Contender) Try(ctx context.Context) (source.Lease, error) {
	if c.News.Quiet() {
		return nil, source.ErrHeld
	}
	for range MaxAgain {
		lease, err := c.attempts.Attempt(ctx)
		if !errors.Is(err, ErrAgain) {
			return lease, err
		}
		if over := context.Cause(ctx); over != nil {
			return nil, over
		}
	}
	return nil, c.home.Named(ctx, Acquire, c.Name, ErrAgain)
}

// Acquire is the step that an attempt's errors name.
const Acquire = "acquire"

// Note takes in what an attempt has shown of the lock, which was begun at start.
func (c *Contender) Note(start boottime.Instant, seen Seen) {
	c.note(start, seen)
	c.fresh = true
}

// Failed is the error of an attempt that failed with one; in doubt, if it may have been carried out.
// Who waits finds that out with the next one.
func (c *Contender) Failed(err error, doubt bool) error {
	if doubt && c.News == nil {
		return errors.Join(source.ErrUnsure, err)
	}
	return err
}

// Acquired is the lease of a lock that was acquired with a record, and what that has left: see Changes.
func (c *Contender) Acquired(hold Hold, stored Record, since boottime.Instant, left int64) *Lease {
	record := source.Record{Name: c.Name, Token: stored.Token, Claim: c.Claim, Prepared: stored.Prepared}
	return &Lease{Holding: NewHolding(record, since), home: c.home, hold: hold, changes: NewChanges(stored, left)}
}

// justNow is how old may be what the attempt before a look has shown, and how far the server is more.
const justNow = 20 * time.Millisecond

// Look implements source.Observer. What the attempt just before has shown need not be asked for
// again, and nobody is asked as long as there is no news of a holder who may be alive.
func (c *Contender) Look(ctx context.Context) (source.Sighting, error) {
	fresh := c.fresh && c.Seen.at.Elapsed() < justNow+c.usual
	c.fresh = false
	if (fresh || c.News.Quiet()) && c.Seen.Lease != process.Gone {
		if seen := c.sight(ctx); seen.State == source.StateHeld {
			return seen, nil
		}
	}
	if err := c.ask(ctx); err != nil {
		return source.Sighting{}, err
	}
	return c.sight(ctx), nil
}

// sight is what was seen, to a contender: finding an attempt of its own in place it reports the lock
// as free, and the next Try takes it. One that is free is not had by who is not the first.
func (c *Contender) sight(ctx context.Context) source.Sighting {
	switch {
	case c.Seen.Held && c.Seen.Ours:
		return c.Free()
	case !c.Seen.Held && c.Seen.Waiter != nil:
		return c.sightOf(ctx, *c.Seen.Waiter)
	}
	return c.Observer.sight()
}

// sightOf is a free lock that the first who waits is about to take. One that died here is taken out
// of the line; elsewhere his time has to end.
func (c *Contender) sightOf(ctx context.Context, first Waiter) source.Sighting {
	c.Free()
	r := first.Record
	if r.Foreign == "" && r.Holder.Judge(c.self).Life == process.Gone {
		first.Leave(ctx)
	}
	r.Token = ""
	why := "it is free, and who waits for it comes first"
	if first.Why != "" {
		why = "it is free, and " + first.Why
	}
	return source.Sighting{State: source.StateHeld, Record: r, Age: source.Unknown, Silence: source.Unknown, Why: why, Next: Near}
}
