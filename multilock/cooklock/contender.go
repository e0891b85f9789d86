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

// looksPerPeriod is how often a waiter looks at the register in a period. More looks would hand
// over the lock sooner, and cost more.
const looksPerPeriod = 100

// contender watches, then swaps, then compares.
type contender struct {
	observer
	claim source.Claim
	last  watch                // the last observation
	at    boottime.Instant     // its time; zero before the first
	rival *multilock.HeldError // the process that was swapping during the last attempt, if any
}

// Try implements source.Contender. It swaps only if the register still holds a value that was
// watched for a whole period.
func (c *contender) Try(ctx context.Context) (source.Lease, error) {
	c.rival = nil
	w, err := c.peek(ctx)
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

// peek peeks, unless the last peek was a moment ago and shows that the watch is not over.
func (c *contender) peek(ctx context.Context) (watch, error) {
	period := c.src.watchFor(decodeValue(c.name, c.last.value))
	if !c.at.IsZero() && c.last.left(period) > 0 && c.at.Elapsed() < period/looksPerPeriod {
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
		Why: record.Foreign + "; choose another name, or remove the register when no process uses it",
	}
}

// refusal returns why the lock was not acquired. If other processes use it with another period,
// that is an error: one process would watch for a shorter time than the other holds the lock.
func (c *contender) refusal(record source.Record, left time.Duration) error {
	if record.TTL == c.src.opt.Period || record.TTL == 0 {
		return source.ErrHeld
	}
	return &source.InvalidError{
		What: "period", Got: c.src.opt.Period.String(),
		Why: fmt.Sprintf("lock %q is in use with a period of %s, by %s; give all hosts the same period. If no process still uses that period, try again in %s",
			c.name, record.TTL, record.Holder, left.Round(time.Millisecond)),
	}
}

// swap puts a new value in the register, and acquires the lock if that replaced the very value that
// was watched: then there was no swap during the watch, so the last holder began before the watch,
// and its time is over. The new holder's time counts from before the swap.
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
		return nil, err // if it took effect, the lock has no holder for a period
	}
	c.at = boottime.Now()
	c.last = c.src.memory.wrote(c.name, value, number, c.at)
	lease := newLease(record, start, cookingTime(c.src.opt.Period), number)
	if watched.holds(old) && lease.remaining() > 0 {
		return lease, nil
	}
	return nil, c.refusal(decodeValue(c.name, old), c.src.opt.Period)
}

// Look implements source.Observer. If another process was swapping during the last attempt, it
// reports that process, which the register does not show.
func (c *contender) Look(ctx context.Context) (source.Observation, error) {
	if c.rival == nil {
		return c.observer.Look(ctx)
	}
	seen := c.rival.Observation
	c.rival, seen.State = nil, source.StateHeld
	return seen, nil
}

// Wake implements source.Contender: a register has no notifications.
func (c *contender) Wake() <-chan struct{} { return nil }
