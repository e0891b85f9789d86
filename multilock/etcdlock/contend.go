package etcdlock

import (
	"context"
	"errors"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// contender is one contender's attempts at one lock. They have one token and one lease, so
// that one of them that is carried out late is known for its own; and when the lease is
// revoked, none is any more.
type contender struct {
	observer
	claim  source.Claim
	stored remote.Record
	grant  *grant // nil if there is none yet, or if it is a lock's
	line   line
}

// Contend implements source.Source.
func (s *Source) Contend(_ context.Context, name string, claim source.Claim, patience source.Patience) (source.Contender, error) {
	if err := s.CheckName(name); err != nil {
		return nil, err
	}
	return &contender{observer: s.newObserver(name, patience), claim: claim.By(s.Self())}, nil
}

// Try implements source.Contender. While it waits and hears nothing, it asks nobody.
func (c *contender) Try(ctx context.Context) (source.Lease, error) {
	if c.line.Quiet(unheard) {
		return nil, source.ErrHeld
	}
	var err error
	for range remote.MaxAgain {
		var lease source.Lease
		if lease, err = c.attempt(ctx); !errors.Is(err, remote.ErrAgain) {
			return lease, err
		}
		if over := context.Cause(ctx); over != nil {
			return nil, over
		}
	}
	return nil, c.src.opError(ctx, "acquire", c.Name, err)
}

// attempt is one transaction, which takes the lock if it is free and nobody is ahead.
// Otherwise it tells who is in the way, and gets a ticket for who waits.
func (c *contender) attempt(ctx context.Context) (source.Lease, error) {
	if c.grant == nil {
		c.grant = c.src.leases.take(ctx, c.claim.TTL)
		c.stored = remote.NewRecord(source.NewToken(), c.claim)
	}
	c.line.Begin()
	resp, doubt, err := c.src.commit(ctx, c.transaction())
	if doubt {
		c.grant.tainted.Store(true)
	}
	switch {
	case leaseGone(err):
		return nil, c.renewGrant(ctx)
	case inDoubt(err) && doubt && c.line.News == nil: // who waits finds out with the next attempt
		return nil, errors.Join(source.ErrUnsure, c.src.opError(ctx, "acquire", c.Name, err))
	case err != nil:
		return nil, c.src.opError(ctx, "acquire", c.Name, err)
	case resp.Succeeded:
		return c.acquired(resp.Header.Revision, resp.Header.Revision), nil
	}
	c.snap = snapshotOf(resp)
	if kv := c.snap.lock; kv != nil && c.ours(kv) {
		return c.acquired(kv.CreateRevision, kv.ModRevision), nil // the answer to an earlier attempt was lost
	}
	return nil, c.refused(ctx, resp)
}

func (c *contender) ours(kv *keyValue) bool {
	_, stored := remote.DecodeRecord(c.Name, kv.Value)
	return c.grant != nil && stored.Token == c.stored.Token
}

// transaction takes the lock, in the order of the tickets: who has none is behind all.
func (c *contender) transaction() transaction {
	lock, life, tickets := c.keys()
	turn := clientv3.Compare(clientv3.CreateRevision(tickets), "=", 0)
	lease := clientv3.WithLease(c.grant.id)
	t := transaction{
		then: []clientv3.Op{clientv3.OpPut(lock, c.stored.Encode()), clientv3.OpPut(life, "", lease)},
		or:   c.looks(),
	}
	if c.line.News != nil {
		own := c.ticketKey()
		if c.line.ticket > 0 {
			turn = clientv3.Compare(clientv3.CreateRevision(tickets), ">", c.line.ticket-1)
			t.then = append(t.then, clientv3.OpDelete(own))
			t.or = append(t.or, clientv3.OpGet(own, clientv3.WithKeysOnly()), c.ahead(c.line.ticket))
		} else {
			t.or = append(t.or, clientv3.OpPut(own, c.stored.Encode(), lease), clientv3.OpGet(own, clientv3.WithKeysOnly()))
		}
	}
	t.when = []clientv3.Cmp{absent(lock), turn.WithPrefix()}
	return t
}

// acquired makes the lease of a lock that was created, and changed last, at these revisions.
func (c *contender) acquired(created, changed int64) source.Lease {
	c.line.leave()
	g := c.grant
	c.grant, c.line.News = nil, nil
	return c.src.newLease(c.Name, c.stored, c.claim, g, created, changed)
}

// renewGrant finds out why the server knows no such lease: the attempt was faster than the
// grant, or the lease has ended.
func (c *contender) renewGrant(ctx context.Context) error {
	pending, err := c.grant.wait(ctx)
	seen := c.grant.waited
	c.grant.waited = true
	if err != nil || !pending && seen {
		c.forget()
	}
	if err != nil {
		return c.src.opError(ctx, "acquire", c.Name, err)
	}
	return remote.ErrAgain
}

// forget gives up a lease that has ended, with all that hung on it. What an attempt without an
// answer has left would be in this contender's own way.
func (c *contender) forget() {
	c.line.leave()
	if c.grant.tainted.Load() {
		c.withdraw()
	}
	c.grant = nil
}

// Look implements source.Observer. What the attempt just before has shown need not be asked
// for again, and nobody is asked as long as there is no news of a holder who gives signs of life.
func (c *contender) Look(ctx context.Context) (source.Sighting, error) {
	if known := c.snap.fresh() || c.line.Quiet(unheard); known && (c.snap.lock == nil || c.snap.life != nil) {
		if seen := c.sight(); seen.State == source.StateHeld {
			return seen, nil
		}
	}
	if err := c.ask(ctx); err != nil {
		return source.Sighting{}, err
	}
	return c.sight(), nil
}

// sight is what a snapshot shows to a contender: finding an attempt of its own in place it
// reports the lock as free, and the next Try takes it. One that is free is not had by who is
// not the first.
func (c *contender) sight() source.Sighting {
	switch {
	case c.snap.lock != nil && c.ours(c.snap.lock):
		return c.Free()
	case c.snap.lock == nil && c.snap.waiter != nil && (c.grant == nil || string(c.snap.waiter.Key) != c.ticketKey()):
		return c.sightOfWaiter()
	}
	return c.observer.sight()
}

// Close takes back what is in doubt, or waits: it ends with the lease.
func (c *contender) Close() error {
	if c.grant == nil {
		return nil
	}
	g, waits := c.grant, c.line.ticket > 0
	c.line.leave()
	c.grant = nil
	if !g.tainted.Load() && !waits {
		c.src.leases.give(g)
		return nil
	}
	g.revoke()
	if g.tainted.Load() {
		c.withdraw()
	}
	return nil
}

// withdraw removes what an attempt without an answer has left. Nothing more can come.
func (c *contender) withdraw() {
	ctx, cancel := context.WithTimeout(context.Background(), leaving)
	defer cancel()
	lock, life, _ := c.keys()
	_, _, _ = c.src.commit(ctx, transaction{
		onlyWithin: leaving, when: []clientv3.Cmp{clientv3.Compare(clientv3.Value(lock), "=", c.stored.Encode())},
		then: []clientv3.Op{clientv3.OpDelete(lock), clientv3.OpDelete(life)},
	})
}
