package etcdlock

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// line is a contender's place among those who wait. It watches the ticket right before its own,
// or the lock: each release wakes one.
type line struct {
	ticket int64              // the revision in which it was created, 0 if there is none
	stop   context.CancelFunc // of the watch
	quit   context.CancelFunc // of the signs of life
}

// unheard is how long no news are believed.
const unheard = time.Minute

// Wake implements source.Contender: from now on this contender waits.
func (c *contender) Wake() <-chan struct{} {
	if c.News == nil {
		c.News = remote.NewNews(unheard)
	}
	return c.News.Wake()
}

// leave ends the watch, and the signs of life of the ticket.
func (l *line) leave() {
	for _, end := range []context.CancelFunc{l.stop, l.quit} {
		if end != nil {
			end()
		}
	}
	*l = line{}
}

func (c *contender) ticketKey() string {
	return fmt.Sprintf("%s%016x", c.tickets(), int64(c.grant.id))
}

// ahead finds the ticket right before one.
func (c *contender) ahead(ticket int64) clientv3.Op {
	return clientv3.OpGet(c.tickets(), append(clientv3.WithLastCreate(), clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithMaxCreateRev(ticket-1))...)
}

// refused finds out whom to wait for, and watches that.
func (c *contender) refused(ctx context.Context, resp *clientv3.TxnResponse) error {
	if c.News == nil {
		return source.ErrHeld
	}
	found := first(resp, len(c.looks())+1) // the new ticket, or the one ahead
	switch {
	case c.line.ticket == 0: // the next attempt tells who is ahead of it
		c.line.ticket = found.CreateRevision
		c.keepAlive(ctx)
		return remote.ErrAgain
	case first(resp, len(c.looks())) == nil: // the ticket is gone, and with it the lease
		c.forget()
		return remote.ErrAgain
	}
	target := []string{c.key(lockKind), c.key(lifeKind)}
	if found != nil {
		target = []string{string(found.Key)}
	}
	c.watch(ctx, target, resp.Header.Revision+1)
	if found == nil && c.Seen.Lease == process.Gone {
		return source.ErrSilent
	}
	return source.ErrHeld
}

// watch tells of the removal of one of the keys, from a revision on.
func (c *contender) watch(ctx context.Context, target []string, from int64) {
	if c.line.stop != nil {
		c.line.stop()
	}
	ctx, c.line.stop = context.WithCancel(context.WithoutCancel(ctx))
	tell := c.News.Tell // the contender may have the lock, and wait no more, when it comes to that
	for _, key := range target {
		go func() {
			c.src.removals(ctx, tell, key, clientv3.WithRev(from))
			// It has ended by itself: there is no leader, or what it was to begin with was compacted.
			if bounded.Sleep(ctx, remote.LongestPause) == nil {
				tell()
			}
		}()
	}
	c.News.Refused()
}

// keepAlive gives signs of life for the ticket.
func (c *contender) keepAlive(ctx context.Context) {
	g, tell, ttl := c.grant, c.News.Tell, c.Claim.TTL
	ctx, c.line.quit = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		for bounded.Sleep(ctx, ttl/4) == nil {
			if err := g.renew(ctx, remote.RenewalLimit(ttl)); leaseGone(err) && ctx.Err() == nil {
				tell()
				return
			}
		}
	}()
}
