package etcdlock

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// line is a contender's place among those who wait. It watches the ticket right before its own,
// or the lock: each release wakes one.
type line struct {
	ticket int64 // the revision in which it was created, 0 if there is none

	mu     sync.Mutex
	target []string // the keys that are watched
	stop   context.CancelFunc
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
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, end := range []context.CancelFunc{l.stop, l.quit} {
		if end != nil {
			end()
		}
	}
	l.stop, l.quit, l.target, l.ticket = nil, nil, nil, 0
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
	own, other := first(resp, len(c.looks())), first(resp, len(c.looks())+1)
	switch {
	case c.line.ticket == 0: // the next attempt tells who is ahead of it
		c.line.ticket = other.CreateRevision
		c.keepAlive(ctx)
		return remote.ErrAgain
	case own == nil: // the ticket is gone, and with it the lease
		c.forget()
		return remote.ErrAgain
	}
	target := []string{c.key(lockKind), c.key(lifeKind)}
	if other != nil {
		target = []string{string(other.Key)}
	}
	c.watch(ctx, target, resp.Header.Revision+1)
	return source.ErrHeld
}

// watch tells of the removal of one of the keys, from a revision on.
func (c *contender) watch(ctx context.Context, target []string, from int64) {
	l := &c.line
	l.mu.Lock()
	defer l.mu.Unlock()
	c.News.Refused()
	if slices.Equal(target, l.target) && l.stop != nil {
		return
	}
	if l.stop != nil {
		l.stop()
	}
	var watching context.Context
	watching, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	l.target = target
	tell := c.News.Tell // the contender may have the lock, and wait no more, when it comes to that
	for _, key := range target {
		go func() {
			c.src.removals(watching, tell, key, clientv3.WithRev(from))
			// It has ended by itself: there is no leader, or what it was to begin with was compacted.
			if bounded.Sleep(watching, remote.LongestPause) == nil {
				l.mu.Lock()
				l.target = nil // nobody is watching any more
				l.mu.Unlock()
				tell()
			}
		}()
	}
}

// keepAlive gives signs of life for the ticket.
func (c *contender) keepAlive(ctx context.Context) {
	l, g, tell := &c.line, c.grant, c.News.Tell
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.quit != nil {
		return
	}
	ctx, l.quit = context.WithCancel(context.WithoutCancel(ctx))
	every := c.Claim.TTL / 4
	go func() {
		for bounded.Sleep(ctx, every) == nil {
			if err := g.renew(ctx, remote.RenewalLimit(c.Claim.TTL)); leaseGone(err) && ctx.Err() == nil {
				tell()
				return
			}
		}
	}()
}
