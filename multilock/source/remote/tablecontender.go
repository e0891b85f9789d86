package remote

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// tableContender attempts to acquire one lock of a table. All attempts have the same token and
// pulse, so an attempt that took effect late is recognised. Waiters acquire the lock in the order
// of their tickets; a contender that does not wait comes after all of them.
type tableContender struct {
	*Contender
	tableLock
	pulse  Pulse // nil before the first attempt, and once a lease has it
	stored Record
	ticket int64 // the revision that created its ticket, 0 if there is none
	doubt  bool  // the reply to an attempt was lost
}

// Contend implements source.Source.
func (t *Table) Contend(_ context.Context, name string, claim source.Claim, policy source.StalePolicy) (_ source.Contender, err error) {
	c := &tableContender{tableLock: tableLock{t, name}}
	c.Contender, err = NewContender(t, c, name, claim, policy)
	return c, err
}

// Wake implements source.Contender: from now on this contender waits.
func (c *tableContender) Wake() <-chan struct{} {
	if c.table.limits.Unordered {
		return nil
	}
	if c.News == nil {
		c.News = NewNews(c.table.limits.Unheard)
	}
	return c.News.Wake()
}

func (c *tableContender) ticketKey() string { return c.tickets() + c.stored.Token }

// Attempt implements Attempts, in one transaction: it acquires the lock if that is free and no
// ticket is ahead. Otherwise it writes a ticket, if the contender waits, and reads what is ahead.
func (c *tableContender) Attempt(ctx context.Context) (source.Lease, error) {
	if c.pulse == nil {
		c.pulse, c.stored = c.table.store.Pulse(ctx, c.Claim.TTL), NewRecord(source.NewToken(), c.Claim)
	}
	c.News.Begin()
	start := boottime.Now()
	a, err := c.table.store.Apply(ctx, c.attempt())
	c.doubt = c.doubt || a.Doubt
	gone, err := c.pulse.Settle(ctx, a, err)
	if gone {
		c.forget()
	}
	switch {
	case errors.Is(err, ErrAgain):
		return nil, err
	case err != nil:
		return nil, c.Failed(c.table.store.OpError(ctx, Acquire, c.name, err), a.Doubt)
	}
	seen := c.own(c.seen(a))
	if a.Done {
		return c.leased(c.acquired(seen)), nil
	}
	c.Note(start, seen)
	if seen.Ours { // the reply to an earlier attempt was lost
		return c.found(ctx, seen)
	}
	return nil, c.refused(ctx, a)
}

// attempt returns the transaction of an attempt.
func (c *tableContender) attempt() Txn {
	record := []byte(c.stored.Encode())
	txn := Txn{
		If:   []Cond{{Key: c.key(lockKind), Field: IfAbsent}, {Key: c.tickets(), Field: IfFirst, Number: c.ticket}},
		Then: []Write{{Key: c.key(lockKind), Value: record, Pulse: c.pulse, Life: c.key(lifeKind)}},
		Show: c.looks(),
	}
	if c.News == nil {
		return txn
	}
	// The contender's own ticket, and the one ahead of it: a new ticket is the newest of all.
	places := Range{Key: c.tickets(), Below: true, Newest: true, Limit: 2, Keys: true, Alive: true}
	if c.ticket > 0 {
		txn.Then = append(txn.Then, Write{Key: c.ticketKey()})
		places.Before = c.ticket + 1
	} else {
		txn.Else = []Write{{Key: c.ticketKey(), Value: record, Pulse: c.pulse}}
	}
	txn.Show = append(txn.Show, places)
	return txn
}

// See implements Lock.
func (c *tableContender) See(ctx context.Context) (Seen, error) {
	seen, err := c.tableLock.See(ctx)
	return c.own(seen), err
}

// own marks what belongs to the contender in an observation.
func (c *tableContender) own(seen Seen) Seen {
	seen.Ours = c.pulse != nil && seen.Held && seen.token == c.stored.Token
	if seen.Waiter != nil && c.pulse != nil && seen.Waiter.ID == c.ticketKey() {
		seen.Waiter = nil
	}
	return seen
}

// acquired returns the lease of a lock that this contender has acquired.
func (c *tableContender) acquired(seen Seen) *TableLease {
	h := &TableLease{
		tableLock: c.tableLock, Lock: c.key(lockKind), Life: c.key(lifeKind), Created: seen.entry.Created, token: c.stored.Token, pulse: c.pulse,
	}
	h.Lease = c.Acquired(h, c.stored, c.pulse.Since(), seen.entry.Changed)
	return h
}

// found returns the lease of a lock that an earlier attempt has acquired. It confirms the lock with
// a heartbeat, from which the validity counts.
func (c *tableContender) found(ctx context.Context, seen Seen) (source.Lease, error) {
	h := c.acquired(seen)
	mine, err := h.Beat(ctx, RenewalLimit(c.Claim.TTL))
	if err != nil || !mine {
		_ = h.Close()
		return nil, c.Failed(cmp.Or(err, ErrAgain), err != nil)
	}
	h.since = c.pulse.Since()
	return c.leased(h), nil
}

// leased hands the pulse over to the lease.
func (c *tableContender) leased(h *TableLease) source.Lease {
	c.pulse, c.News, c.ticket, c.doubt = nil, nil, 0, false
	return h
}

// refused subscribes a waiter to changes of what is ahead.
func (c *tableContender) refused(ctx context.Context, a Applied) error {
	if c.News == nil {
		return source.ErrHeld
	}
	places := a.Found[len(c.looks())]
	if len(places) == 0 || places[0].Key != c.ticketKey() { // the ticket has ended, and with it the pulse
		c.forget()
		return ErrAgain
	}
	c.ticket = places[0].Created
	first := len(places) == 1
	if first && !c.Seen.Held { // the attempt arrived too late to count
		return ErrAgain
	}
	w := Wait{Ticket: c.ticketKey(), Ahead: []string{c.key(lockKind), c.key(lifeKind)}, Revision: a.Revision, TTL: c.Claim.TTL, Tell: c.News.Tell}
	if !first {
		w.Ahead = []string{places[1].Key}
	}
	if c.Seen.Held {
		w.Held = c.Seen.entry.Created
	}
	c.pulse.Await(ctx, w)
	c.News.Refused()
	if first && c.Seen.Lease == process.Gone {
		return source.ErrSilent
	}
	return source.ErrHeld
}

// forget ends the pulse, and removes the ticket and the entries that an unanswered attempt may have
// written.
func (c *tableContender) forget() {
	pulse, used := c.pulse, c.ticket > 0 || c.doubt
	pulse.Close(!used)
	if used {
		ctx, cancel := context.WithTimeout(context.Background(), leaving)
		defer cancel()
		gone := Write{Key: c.ticketKey(), Tell: c.tickets()}
		_, _ = c.table.store.Apply(ctx, Txn{
			If:    []Cond{{Key: c.key(lockKind), Field: IfValue, Value: []byte(c.stored.Encode())}},
			Then:  []Write{{Key: c.key(lockKind), Life: c.key(lifeKind), Tell: c.tickets()}, gone},
			Else:  []Write{gone},
			Limit: leaving,
		})
	}
	c.pulse, c.ticket, c.doubt = nil, 0, false
}

// leaving is the time limit for closing a contender.
const leaving = 1300*time.Millisecond - Grace

// Close implements source.Observer: it withdraws attempts whose outcome is unknown, and the ticket.
func (c *tableContender) Close() error {
	if c.pulse != nil {
		c.forget()
	}
	return nil
}
