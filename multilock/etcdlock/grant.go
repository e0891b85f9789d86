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

// grant is a lease of the server. The client chooses its ID, so that a repeated request grants it
// once, and transactions that use it can be sent before the grant is confirmed.
type grant struct {
	*server
	id      clientv3.LeaseID
	seconds int64
	granted chan struct{} // closed when err is known
	err     error
	// tainted means that a transaction with the lease may still take effect. The lease is not
	// reused then, so that its keys end with it.
	tainted atomic.Bool

	mu   sync.Mutex
	good boottime.Instant // a moment before the last confirmed heartbeat
}

// marginSecond is added to the TTL for the lease, because a leader that was replaced without
// knowing it may confirm heartbeats for as long as an election takes.
const marginSecond = 1

func secondsOf(ttl time.Duration) int64 {
	return int64((ttl+time.Second-1)/time.Second) + marginSecond
}

// leases are the unused leases of a source, for its next locks. When the source is closed they
// expire by themselves, which costs the server next to nothing.
type leases struct {
	*server
	mu     sync.Mutex
	unused []*grant
}

const (
	maxUnused = 128 // a list of short jobs returns many at once
	// longestUnused is the TTL of the longest lease that is kept for reuse, because unused leases are
	// not revoked.
	longestUnused = 10 * 60
)

// take returns a lease for a TTL: an unused one that was kept alive recently, or one that is being
// granted.
func (l *leases) take(ctx context.Context, ttl time.Duration) *grant {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unused = slices.DeleteFunc(l.unused, func(g *grant) bool { // it expires by itself
		return g.since().Elapsed() > time.Duration(g.seconds)*time.Second/4 || g.answered() && g.err != nil
	})
	i := slices.IndexFunc(l.unused, func(g *grant) bool { return g.seconds == secondsOf(ttl) })
	if i < 0 {
		return l.grant(ctx, ttl)
	}
	usable := l.unused[i]
	l.unused = slices.Delete(l.unused, i, i+1)
	return usable
}

// grant requests a new lease, and does not wait for the reply.
func (l *leases) grant(ctx context.Context, ttl time.Duration) *grant {
	g := &grant{server: l.server, id: clientv3.LeaseID(rand.Int64N(1<<62) + 1), seconds: secondsOf(ttl), granted: make(chan struct{}), good: boottime.Now()} //nolint:gosec // a unique ID, no secret
	go g.ask(context.WithoutCancel(ctx))
	return g
}

// give returns a lease without keys for reuse.
func (l *leases) give(g *grant) {
	l.mu.Lock()
	kept := !g.tainted.Load() && g.seconds <= longestUnused && len(l.unused) < maxUnused
	if kept {
		l.unused = append(l.unused, g)
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
			return nil // the reply to an earlier try was lost
		}
		return err
	})
}

// wait waits for the reply to the grant; pending reports whether it was outstanding.
func (g *grant) wait(ctx context.Context) (pending bool, err error) {
	pending = !g.answered()
	select {
	case <-g.granted:
		return pending, g.err
	case <-ctx.Done():
		return pending, context.Cause(ctx)
	}
}

// answered reports whether err is known.
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

// beat sends one heartbeat. (The client's own method retries without a pause.)
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

// revoke ends a lease, and with it all its keys. If that fails, the lease expires by itself.
func (s *server) revoke(id clientv3.LeaseID) {
	ctx, cancel := context.WithTimeout(context.Background(), leaving)
	defer cancel()
	_, _ = s.repeat(ctx, leaving, func(ctx context.Context, c *clientv3.Client) error {
		_, err := c.Revoke(ctx, id)
		return err
	})
}
