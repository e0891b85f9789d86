package cooklock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/multilock/go/multilock/source"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/boottime"
)

// looks is how often a waiter looks at the register in a period. Looking more
// often would make the change of hands that much quicker, and cost that much more.
const looks = 100

// contender watches, then swaps, then compares.
type contender struct {
	observer
	claim source.Claim
	last  watch                // what the last peek showed
	at    boottime.Instant     // when; zero before the first
	rival *multilock.HeldError // who swapped when the last attempt wanted to, if anybody
}

// Try implements source.Contender. It swaps only if the register still holds a
// value that was watched for a whole period.
func (c *contender) Try(ctx context.Context) (source.Lease, error) {
	c.rival = nil
	w, err := c.glance(ctx)
	if err != nil {
		return nil, err
	}
	record := decodeValue(c.name, w.value)
	if w.value != nil && record.Foreign != "" {
		return nil, c.foreign(record)
	}
	if left := w.left(c.src.watchFor(record)); left > 0 {
		return nil, c.refusal(record, left)
	}
	return c.swap(ctx, w)
}

// glance peeks, unless that was done a moment ago and nothing depends on it.
func (c *contender) glance(ctx context.Context) (watch, error) {
	period := c.src.watchFor(decodeValue(c.name, c.last.value))
	if !c.at.IsZero() && c.last.left(period) > 0 && c.at.Elapsed() < period/looks {
		return c.last, nil
	}
	w, err := c.src.peek(ctx, c.name, c.register)
	if err == nil {
		c.last, c.at = w, boottime.Now()
	}
	return w, err
}

func (c *contender) foreign(record source.Record) error {
	return &source.InvalidError{
		What: "register of lock", Got: c.name,
		Why: record.Foreign + "; choose another name, or remove the register when nobody uses it",
	}
}

// refusal tells of a lock that others use with another period: then one of them
// watches for a shorter time than the other one works.
func (c *contender) refusal(record source.Record, left time.Duration) error {
	if record.TTL == c.src.opt.Period || record.TTL == 0 {
		return source.ErrHeld
	}
	return &source.InvalidError{
		What: "period", Got: c.src.opt.Period.String(),
		Why: fmt.Sprintf("lock %q is in use with a period of %s, by %s; give all hosts the same one. If nobody uses that one any more, come back in %s",
			c.name, record.TTL, record.Holder, left.Round(time.Millisecond)),
	}
}

// swap puts a new value in the register, and has the lock if that replaced the
// very value that was watched: then nobody has swapped since, so whoever did last
// began before the watch, and is done. Its own time counts from before the swap.
func (c *contender) swap(ctx context.Context, watched watch) (source.Lease, error) {
	start := boottime.Now()
	record := source.Record{Name: c.name, Token: source.NewToken(), Claim: c.claim, Prepared: time.Now()}
	value, err := encodeValue(record)
	if err != nil {
		return nil, err
	}
	old, number, err := c.register.Swap(ctx, value)
	if err != nil {
		errors.As(err, &c.rival)
		return nil, err // if it did happen, the lock is nobody's for a period
	}
	c.at = boottime.Now()
	c.last = c.src.memory.wrote(c.name, value, number, c.at)
	lease := newLease(record, start, cookingTime(c.src.opt.Period), number)
	if watched.holds(old) && lease.remaining() > 0 {
		return lease, nil
	}
	return nil, c.refusal(decodeValue(c.name, old), c.src.opt.Period)
}

// Look implements source.Observer. The register alone would not show who stood in
// the way of this contender's swap by being in the middle of another one.
func (c *contender) Look(ctx context.Context) (source.Sighting, error) {
	if c.rival == nil {
		return c.observer.Look(ctx)
	}
	seen := c.rival.Sighting
	c.rival, seen.State = nil, source.StateHeld
	return seen, nil
}

// Wake implements source.Contender: a register tells nobody.
func (c *contender) Wake() <-chan struct{} { return nil }
