package remote

import (
	"context"
	"errors"
	"time"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// Attempts is what an author implements for contenders of a lock.
type Attempts interface {
	// See also reports what belongs to the contender: Seen.Ours, and Seen.Waiter.
	Lock
	// Attempt makes one attempt. The error is source.ErrHeld, ErrAgain if another attempt makes
	// sense at once, or the one that Failed returns. It may report what it saw of the lock with
	// Note.
	Attempt(ctx context.Context) (source.Lease, error)
}

// Contender makes one contender's attempts at one lock.
type Contender struct {
	*Observer
	Claim    source.Claim
	News     *News // notifications; nil before it waits, and if the server has none
	attempts Attempts
	fresh    bool // Seen is from an attempt that no look has used yet
}

// NewContender returns a contender without attempts. The error is source.ErrInvalid for a bad name.
func NewContender(home Home, attempts Attempts, name string, claim source.Claim, policy source.StalePolicy) (*Contender, error) {
	o, err := NewObserver(home, attempts, name, policy)
	return &Contender{Observer: o, Claim: claim.By(home.Self()), attempts: attempts}, err
}

// Wake implements source.Contender for servers without notifications.
func (c *Contender) Wake() <-chan struct{} { return nil }

// Try implements source.Contender. It sends no request while the contender waits and has received
// no notification.
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

// Note records what an attempt that was begun at start has shown of the lock.
func (c *Contender) Note(start boottime.Instant, seen Seen) {
	c.note(start, seen)
	c.fresh = true
}

// Failed returns the error of an attempt that failed; doubt means that it may have taken effect. A
// waiter finds that out with its next attempt.
func (c *Contender) Failed(err error, doubt bool) error {
	if doubt && c.News == nil {
		return errors.Join(source.ErrUnsure, err)
	}
	return err
}

// Acquired returns the lease of a lock that was acquired with a record, and the revision that this
// left: see Changes.
func (c *Contender) Acquired(hold Hold, stored Record, since boottime.Instant, left int64) *Lease {
	record := source.Record{Name: c.Name, Token: stored.Token, Claim: c.Claim, Prepared: stored.Prepared}
	return &Lease{Holding: NewHolding(record, since), home: c.home, hold: hold, changes: NewChanges(stored, left)}
}

// justNow is the maximum age of an attempt's observation for a look, in addition to the usual
// duration of a request.
const justNow = 20 * time.Millisecond

// Look implements source.Observer. It reuses the observation of an attempt just before, and sends
// no request while there is no notification and the holder may be alive.
func (c *Contender) Look(ctx context.Context) (source.Observation, error) {
	fresh := c.fresh && c.Seen.at.Elapsed() < justNow+c.usual
	c.fresh = false
	if (fresh || c.News.Quiet()) && c.Seen.Lease != process.Gone {
		if seen := c.sight(ctx); seen.State == source.StateHeld {
			return seen, nil
		}
	}
	if err := c.ask(ctx); err != nil {
		return source.Observation{}, err
	}
	return c.sight(ctx), nil
}

// sight assesses the last observation for a contender. If the lock is held by an attempt of the
// contender, it is reported as free, and the next Try takes it. If it is free but has an earlier
// waiter, it is reported as held.
func (c *Contender) sight(ctx context.Context) source.Observation {
	switch {
	case c.Seen.Held && c.Seen.Ours:
		return c.Free()
	case !c.Seen.Held && c.Seen.Waiter != nil:
		return c.sightOf(ctx, *c.Seen.Waiter)
	}
	return c.Observer.sight()
}

// sightOf reports a free lock that the first waiter is about to acquire. If that waiter died on
// this host, its ticket is removed; otherwise the ticket has to expire.
func (c *Contender) sightOf(ctx context.Context, first Waiter) source.Observation {
	c.Free()
	r := first.Record
	if r.Foreign == "" && r.Holder.Judge(c.self).Life == process.Gone {
		first.Leave(ctx)
	}
	r.Token = ""
	why := "it is free, and waiting processes come first"
	if first.Why != "" {
		why = "it is free, and " + first.Why
	}
	return source.Observation{State: source.StateHeld, Record: r, Age: source.Unknown, Silence: source.Unknown, Why: why, Next: Near}
}
