package etcdlock

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/multilock/go/multilock/boottime"
)

// grant is a lease of the server's. Its number is drawn here, so that asking for it twice
// grants it once, and what is sent with it can be sent before the answer is there.
type grant struct {
	*server
	id      clientv3.LeaseID
	seconds int64
	granted chan struct{} // closed when err says whether it was
	err     error
	// tainted: something that was sent with it may still be carried out. Nobody is to use it
	// again, so that it ends with the lease.
	tainted atomic.Bool

	mu   sync.Mutex
	good boottime.Instant // the moment before the last heartbeat that was confirmed
}

// spareSecond is what a lease lasts longer than the TTL: a leader that was replaced and does not
// know it yet may confirm a heartbeat for as long as an election takes.
const spareSecond = 1

func secondsOf(ttl time.Duration) int64 {
	return int64((ttl+time.Second-1)/time.Second) + spareSecond
}

// leases are those of a source: what was held with them may change, they are kept for the next. In
// the end they end by themselves, and cost the server next to nothing.
type leases struct {
	*server
	mu    sync.Mutex
	spare []*grant
}

const (
	mostSpare = 128 // a list of short jobs gives back many at once
	// longSpare is the longest lease that is kept for others: nobody gives it back in the end.
	longSpare = 10 * 60
)

// take is a lease for a TTL: one that is to spare and was kept alive just now, or one that is
// being granted.
func (l *leases) take(ctx context.Context, ttl time.Duration) *grant {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spare = slices.DeleteFunc(l.spare, func(g *grant) bool { // it ends by itself
		return g.since().Elapsed() > time.Duration(g.seconds)*time.Second/4 || g.answered() && g.err != nil
	})
	i := slices.IndexFunc(l.spare, func(g *grant) bool { return g.seconds == secondsOf(ttl) })
	if i < 0 {
		return l.grant(ctx, ttl)
	}
	usable := l.spare[i]
	l.spare = slices.Delete(l.spare, i, i+1)
	return usable
}

// grant is a lease that is being granted.
func (l *leases) grant(ctx context.Context, ttl time.Duration) *grant {
	g := &grant{server: l.server, id: clientv3.LeaseID(rand.Int64N(1<<62) + 1), seconds: secondsOf(ttl), granted: make(chan struct{}), good: boottime.Now()} //nolint:gosec // a number that nobody else has, no secret
	go g.ask(context.WithoutCancel(ctx))
	return g
}

// give takes a lease back on which nothing hangs any more.
func (l *leases) give(g *grant) {
	l.mu.Lock()
	kept := !g.tainted.Load() && g.seconds <= longSpare && len(l.spare) < mostSpare
	if kept {
		l.spare = append(l.spare, g)
	}
	l.mu.Unlock()
	if !kept {
		g.revoke()
	}
}

func (g *grant) ask(ctx context.Context) {
	defer close(g.granted)
	_, g.err = g.repeat(ctx, g.timeout, func(ctx context.Context, c *clientv3.Client) error {
		_, err := etcdserverpb.NewLeaseClient(c.ActiveConnection()).LeaseGrant(ctx, &etcdserverpb.LeaseGrantRequest{ID: int64(g.id), TTL: g.seconds})
		if err = rpctypes.Error(err); errors.Is(err, rpctypes.ErrLeaseExist) {
			return nil // the answer to an earlier try was lost
		}
		return err
	})
}

// wait gives the answer to the grant; pending says that it was not there yet.
func (g *grant) wait(ctx context.Context) (pending bool, err error) {
	pending = !g.answered()
	select {
	case <-g.granted:
		return pending, g.err
	case <-ctx.Done():
		return pending, context.Cause(ctx)
	}
}

// answered says whether err is known.
func (g *grant) answered() bool {
	select {
	case <-g.granted:
		return true
	default:
		return false
	}
}

func (g *grant) since() boottime.Instant {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.good
}

// renew sends a heartbeat. The error is rpctypes.ErrLeaseNotFound if the lease has ended.
func (g *grant) renew(ctx context.Context, limit time.Duration) error {
	start := boottime.Now()
	_, err := g.repeat(ctx, limit, func(ctx context.Context, c *clientv3.Client) error { return rpctypes.Error(g.beat(ctx, c)) })
	if err == nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.good = start
	}
	return err
}

// beat is one heartbeat. (The client's own way to do that tries again without a pause.)
func (g *grant) beat(ctx context.Context, c *clientv3.Client) error {
	stream, err := etcdserverpb.NewLeaseClient(c.ActiveConnection()).LeaseKeepAlive(ctx)
	if err != nil {
		return err
	}
	if err := stream.Send(&etcdserverpb.LeaseKeepAliveRequest{ID: int64(g.id)}); err != nil {
		return err
	}
	resp, err := stream.Recv()
	switch {
	case err != nil:
		return err
	case resp.GetTTL() <= 0:
		return rpctypes.ErrLeaseNotFound
	}
	return stream.CloseSend()
}

func (g *grant) revoke() { g.server.revoke(g.id) }

// revoke ends a lease, and with it all keys that hang on it. If that cannot be done now, it
// ends by itself.
func (s *server) revoke(id clientv3.LeaseID) {
	ctx, cancel := context.WithTimeout(context.Background(), leaving)
	defer cancel()
	_, _ = s.repeat(ctx, leaving, func(ctx context.Context, c *clientv3.Client) error {
		_, err := c.Revoke(ctx, id)
		return err
	})
}
