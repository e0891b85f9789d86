package etcdlock

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// contender is one contender's attempts at one lock. They have one token and one lease, so
// that one of them that is carried out late is known for its own; and when the lease is
// revoked, none is any more.
type contender struct {
	*remote.Contender
	lock
	stored remote.Record
	grant  *grant // nil if there is none yet, or if it is a lock's
	line   line
}

// Contend implements source.Source.
func (s *Source) Contend(_ context.Context, name string, claim source.Claim, policy source.StalePolicy) (_ source.Contender, err error) {
	c := &contender{lock: lock{src: s, name: name}}
	c.Contender, err = remote.NewContender(s, c, name, claim, policy)
	return c, err
}

// Attempt implements remote.Attempts: one transaction, which takes the lock if it is free and nobody is
// ahead. Otherwise it tells who is in the way, and gets a ticket for who waits.
func (c *contender) Attempt(ctx context.Context) (source.Lease, error) {
	if c.grant == nil {
		c.grant = c.src.leases.take(ctx, c.Claim.TTL)
		c.stored = remote.NewRecord(source.NewToken(), c.Claim)
	}
	c.News.Begin()
	start := boottime.Now()
	resp, doubt, err := c.src.commit(ctx, c.transaction())
	if doubt {
		c.grant.tainted.Store(true)
	}
	switch {
	case leaseGone(err):
		return nil, c.renewGrant(ctx)
	case err != nil:
		return nil, c.Failed(c.src.opError(ctx, remote.Acquire, c.name, err), doubt && inDoubt(err))
	case resp.Succeeded:
		return c.acquired(resp.Header.Revision, resp.Header.Revision), nil
	}
	seen := c.own(c.seen(resp))
	c.Note(start, seen)
	if seen.Ours { // the answer to an earlier attempt was lost
		return c.acquired(seen.Sign.Count, first(resp, 0).ModRevision), nil
	}
	return nil, c.refused(ctx, resp)
}

// See implements remote.Lock.
func (c *contender) See(ctx context.Context) (remote.Seen, error) {
	seen, err := c.lock.See(ctx)
	return c.own(seen), err
}

// own finds the contender's own in what was seen.
func (c *contender) own(seen remote.Seen) remote.Seen {
	seen.Ours = c.grant != nil && seen.Held && seen.Sign.Token == c.stored.Token
	if seen.Waiter != nil && c.grant != nil && seen.Waiter.ID == c.ticketKey() {
		seen.Waiter = nil
	}
	return seen
}

// transaction takes the lock, in the order of the tickets: who has none is behind all.
func (c *contender) transaction() transaction {
	turn := clientv3.Compare(clientv3.CreateRevision(c.tickets()), "=", 0)
	lease := clientv3.WithLease(c.grant.id)
	t := transaction{
		then: []clientv3.Op{clientv3.OpPut(c.key(lockKind), c.stored.Encode()), clientv3.OpPut(c.key(lifeKind), "", lease)},
		or:   c.looks(),
	}
	if c.News != nil {
		own := c.ticketKey()
		if c.line.ticket > 0 {
			turn = clientv3.Compare(clientv3.CreateRevision(c.tickets()), ">", c.line.ticket-1)
			t.then = append(t.then, clientv3.OpDelete(own))
			t.or = append(t.or, clientv3.OpGet(own, clientv3.WithKeysOnly()), c.ahead(c.line.ticket))
		} else {
			t.or = append(t.or, clientv3.OpPut(own, c.stored.Encode(), lease), clientv3.OpGet(own, clientv3.WithKeysOnly()))
		}
	}
	t.when = []clientv3.Cmp{absent(c.key(lockKind)), turn.WithPrefix()}
	return t
}

// acquired makes the lease of a lock that was created, and changed last, at these revisions.
func (c *contender) acquired(created, changed int64) source.Lease {
	c.line.leave()
	l := &lease{lock: lock{src: c.src, name: c.name}, acquired: remote.Sign{Token: c.stored.Token, Count: created}, news: remote.NewNews(unlooked)}
	l.Lease = c.Acquired(l, c.stored, c.grant.since(), changed)
	l.grant.Store(c.grant)
	c.grant, c.News = nil, nil
	return l
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
		return c.src.opError(ctx, remote.Acquire, c.name, err)
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

// Close takes back what is in doubt, or waits: it ends with the lease.
func (c *contender) Close() error {
	if c.grant == nil {
		return nil
	}
	if c.line.ticket > 0 {
		c.grant.revoke()
	} else {
		c.src.leases.give(c.grant)
	}
	c.forget()
	return nil
}

// withdraw removes what an attempt without an answer has left. Nothing more can come.
func (c *contender) withdraw() {
	ctx, cancel := context.WithTimeout(context.Background(), leaving)
	defer cancel()
	_, _, _ = c.src.commit(ctx, transaction{
		onlyWithin: leaving, when: []clientv3.Cmp{clientv3.Compare(clientv3.Value(c.key(lockKind)), "=", c.stored.Encode())},
		then: []clientv3.Op{clientv3.OpDelete(c.key(lockKind)), clientv3.OpDelete(c.key(lifeKind))},
	})
}
