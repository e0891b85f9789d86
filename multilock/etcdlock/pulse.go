package etcdlock

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/source/remote"
)

// pulse is the lease of a contender's keys, replaced by another one if the server has lost it.
type pulse struct {
	*server
	grant atomic.Pointer[grant]
	known bool               // the grant was confirmed
	gone  bool               // the lease has ended
	stop  context.CancelFunc // ends the watch of what is ahead
	quit  context.CancelFunc // ends the ticket's heartbeats

	renewing sync.Mutex   // one heartbeat at a time: two would give the lock a new lease each
	looked   bool         // the lock was seen under the lease; guarded by renewing
	news     *remote.News // reports the lock's removal
	watched  atomic.Bool
}

// unlooked is how long a watch without events is trusted.
const unlooked = 10 * time.Minute

// Pulse implements remote.Store.
func (s *server) Pulse(ctx context.Context, ttl time.Duration) remote.Pulse {
	p := &pulse{server: s, news: remote.NewNews(unlooked)}
	p.grant.Store(s.leases.take(ctx, ttl))
	return p
}

// Stop implements remote.Store.
func (s *server) Stop(pulse int64) { s.revoke(clientv3.LeaseID(pulse)) }

// Settle implements remote.Pulse. If the server does not know the lease, the request overtook the
// grant, or the lease has ended.
func (p *pulse) Settle(ctx context.Context, a remote.Applied, failed error) (gone bool, err error) {
	g := p.grant.Load()
	if a.Done {
		p.rest()
	}
	if a.Doubt {
		g.tainted.Store(true)
	}
	if !leaseGone(failed) {
		return false, failed
	}
	pending, err := g.wait(ctx)
	p.gone = err != nil || !pending && p.known
	if p.known = true; err == nil {
		err = remote.ErrAgain
	}
	return p.gone, err
}

// Since implements remote.Pulse.
func (p *pulse) Since() boottime.Instant { return p.grant.Load().since() }

// Tainted implements remote.Pulse.
func (p *pulse) Tainted() bool { return p.grant.Load().tainted.Load() }

// Close implements remote.Pulse.
func (p *pulse) Close(unused bool) {
	p.rest()
	switch g := p.grant.Load(); {
	case p.gone:
	case unused:
		p.leases.give(g)
	default:
		g.revoke()
	}
}

// rest ends the watch and the ticket's heartbeats.
func (p *pulse) rest() {
	for _, end := range []*context.CancelFunc{&p.stop, &p.quit} {
		if *end != nil {
			(*end)()
			*end = nil
		}
	}
}

// Await implements remote.Pulse: it watches the ticket right ahead, or the lock. Each release wakes
// one waiter.
func (p *pulse) Await(ctx context.Context, w remote.Wait) {
	if p.quit == nil {
		p.keepAlive(ctx, w)
	}
	if p.stop != nil {
		p.stop()
	}
	ctx, p.stop = context.WithCancel(context.WithoutCancel(ctx))
	for _, key := range w.Ahead {
		go func() {
			p.removals(ctx, w.Tell, key, clientv3.WithRev(w.Revision+1))
			// The watch has ended by itself: there is no leader, or its first revision was compacted.
			if bounded.Sleep(ctx, remote.LongestPause) == nil {
				w.Tell()
			}
		}()
	}
}

// keepAlive sends heartbeats for the ticket.
func (p *pulse) keepAlive(ctx context.Context, w remote.Wait) {
	ctx, p.quit = context.WithCancel(context.WithoutCancel(ctx))
	g := p.grant.Load()
	go func() {
		for bounded.Sleep(ctx, w.TTL/4) == nil {
			if err := g.renew(ctx, remote.RenewalLimit(w.TTL)); leaseGone(err) && ctx.Err() == nil {
				w.Tell()
				return
			}
		}
	}()
}

// Beat implements remote.Pulse. An accepted heartbeat proves that the lock was not broken for lack
// of one, and a forced break ends the lease, too. It does not prove that no user has removed the
// key, and no breaker has died before it ended the lease: a watch reports both, and then the lock
// is read.
func (p *pulse) Beat(ctx context.Context, h *remote.TableLease, limit time.Duration) (mine bool, err error) {
	p.renewing.Lock()
	defer p.renewing.Unlock()
	p.rest()
	g := p.grant.Load()
	beat := g.renew(ctx, limit)
	if beat == nil && !p.looked {
		p.guard(h, h.Created)
	}
	if beat == nil && p.news.Quiet() || beat != nil && !leaseGone(beat) {
		return beat == nil, beat
	}
	p.news.Begin()
	a, err := p.Apply(ctx, remote.Txn{Limit: limit, Show: looks(h)})
	if err != nil || a.Entry(0).Created != h.Created {
		return false, err
	}
	p.guard(h, a.Revision)
	if beat == nil && a.Entry(1).Pulse == int64(g.id) {
		return true, nil
	}
	return p.revive(ctx, h, limit, a.Entry(1).Changed)
}

// looks returns the ranges that show a lock, and the key under its lease.
func looks(h *remote.TableLease) []remote.Range {
	return []remote.Range{{Key: h.Lock, Keys: true}, {Key: h.Life, Keys: true}}
}

// guard watches the lock, which existed at a revision.
func (p *pulse) guard(h *remote.TableLease, revision int64) {
	p.looked = true
	p.news.Refused()
	if p.watched.Swap(true) {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	h.OnEnd(stop)
	go func() {
		p.removals(ctx, p.news.Tell, h.Lock, clientv3.WithRev(revision+1))
		p.watched.Store(false) // there is no leader, or the revision was compacted
		p.news.Tell()
	}()
}

// revive gives a lock that was not broken a new lease, so that a server that was restored, or lost
// its leases in another way, removes no lock. The lease is granted now, because the validity of the
// lock counts from now. The condition is the key that was seen, so a request that arrives late does
// not replace a later one.
func (p *pulse) revive(ctx context.Context, h *remote.TableLease, limit time.Duration, changed int64) (mine bool, err error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	g := p.leases.grant(ctx, h.Record().TTL)
	if _, err := g.wait(limited); err != nil {
		return false, err
	}
	under := &pulse{}
	under.grant.Store(g)
	a, err := p.Apply(ctx, remote.Txn{
		Limit: limit,
		If:    []remote.Cond{{Key: h.Lock, Field: remote.IfCreated, Number: h.Created}, {Key: h.Life, Field: remote.IfChanged, Number: changed}},
		Then:  []remote.Write{{Key: h.Life, Value: []byte{}, Pulse: under}}, Show: looks(h),
	})
	if a.Doubt {
		g.tainted.Store(true)
	}
	switch {
	case err != nil || a.Entry(0).Created != h.Created:
		return false, err
	case a.Entry(1).Pulse == int64(g.id):
		p.grant.Store(g)
		return true, nil
	}
	return false, remote.ErrAgain
}
