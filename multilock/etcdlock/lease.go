package etcdlock

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// lease is a lock that is held. Every write asks for the revision that created it.
type lease struct {
	*remote.Holding
	src     *Source
	created int64
	changes *remote.Changes // each leaves the revision in which it was made

	tried atomic.Bool // a release was not answered: it may have been carried out

	renewing sync.Mutex // one sign of life at a time: two would give the lock a new lease each
	looked   int64      // the last revision in which the lock was seen, 0 before the first; guarded by it
	grant    atomic.Pointer[grant]
	news     *remote.News // of the lock's removal
	watched  atomic.Bool
}

// newLease is that of a lock which was created, and changed last, at these revisions.
func (s *Source) newLease(name string, stored remote.Record, claim source.Claim, g *grant, created, changed int64) *lease {
	record := source.Record{Name: name, Token: stored.Token, Claim: claim, Prepared: stored.Prepared}
	l := &lease{Holding: remote.NewHolding(record, g.since()), src: s, created: created, changes: remote.NewChanges(stored, changed), news: remote.NewNews()}
	l.grant.Store(g)
	return l
}

var _ source.Lease = (*lease)(nil)

func (l *lease) key(kind string) string { return l.src.key(kind, l.Record().Name) }

// mine compares that the lock is this lease's.
func (l *lease) mine() clientv3.Cmp { return held(l.key(lockKind), l.created) }

func (l *lease) isMine(kv *keyValue) bool { return kv != nil && kv.CreateRevision == l.created }

// fail names the step in which an error came up.
func (l *lease) fail(ctx context.Context, op string, err error) error {
	return l.src.opError(ctx, op, l.Record().Name, err)
}

// unlooked is how long a watch is believed that tells nothing of the lock.
const unlooked = 10 * time.Minute

// Renew implements source.Lease: one sign of life. That it is accepted shows that the lock was not
// broken for silence, and whoever breaks it by force ends the lease, too. He may die in between,
// or the key be removed by hand: of that a watch tells, and then the lock is looked at.
func (l *lease) Renew(ctx context.Context) error {
	if err := l.Ended(); err != nil {
		return err
	}
	l.renewing.Lock()
	defer l.renewing.Unlock()
	limit := remote.RenewalLimit(l.Record().TTL)
	g := l.grant.Load()
	beat := g.renew(ctx, limit)
	if beat == nil && l.looked == 0 {
		l.guard(l.created)
	}
	if beat == nil && l.news.Quiet(unlooked) || beat != nil && !leaseGone(beat) {
		return l.fail(ctx, "renew", beat)
	}
	l.news.Begin()
	resp, _, err := l.src.commit(ctx, transaction{onlyWithin: limit, then: l.signs()})
	switch {
	case err != nil:
		return l.fail(ctx, "renew", err)
	case !l.isMine(first(resp, 0)):
		return l.Lost(errGone)
	}
	l.guard(resp.Header.Revision)
	if beat == nil && g.carries(first(resp, 1)) {
		return nil
	}
	return l.revive(ctx, limit, first(resp, 1))
}

// guard watches the lock, which was there at a revision.
func (l *lease) guard(revision int64) {
	l.looked = revision
	l.news.Refused()
	if l.watched.Swap(true) {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	l.OnEnd(stop)
	go func() {
		l.src.watch(ctx, l.news.Tell, l.key(lockKind), clientv3.WithRev(revision+1))
		l.watched.Store(false) // there is no leader, or the revision was compacted
		l.news.Tell()
	}()
}

// signs reads the lock and its sign of life.
func (l *lease) signs() []clientv3.Op {
	return []clientv3.Op{clientv3.OpGet(l.key(lockKind), clientv3.WithKeysOnly()), clientv3.OpGet(l.key(lifeKind), clientv3.WithKeysOnly())}
}

// revive gives a lock that nobody has broken yet a new lease: a server that was restored, or
// lost its leases in another way, takes nobody's lock away. The lease is granted now, for the
// belief in the lock counts from now; and the sign of life is the one that was seen, so that
// what is carried out late does not take the place of a later one.
func (l *lease) revive(ctx context.Context, limit time.Duration, seen *keyValue) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	g := l.src.leases.grant(ctx, l.Record().TTL)
	if _, err := g.wait(limited); err != nil {
		return l.fail(ctx, "renew", err)
	}
	life, before := l.key(lifeKind), int64(0)
	if seen != nil {
		before = seen.ModRevision
	}
	resp, doubt, err := l.src.commit(ctx, transaction{
		onlyWithin: limit, when: []clientv3.Cmp{l.mine(), clientv3.Compare(clientv3.ModRevision(life), "=", before)},
		then: []clientv3.Op{clientv3.OpPut(life, "", clientv3.WithLease(g.id))}, or: l.signs(),
	})
	if doubt {
		g.tainted.Store(true)
	}
	switch {
	case err != nil:
		return l.fail(ctx, "renew", err)
	case resp.Succeeded, l.isMine(first(resp, 0)) && g.carries(first(resp, 1)):
		l.grant.Store(g)
		return nil
	case l.isMine(first(resp, 0)):
		return l.fail(ctx, "renew", remote.ErrAgain)
	}
	return l.Lost(errGone)
}

// Release implements source.Lease. After an answer that was lost, nothing to be released is
// what the first try has left, unless the lock was broken: whoever does that leaves its token.
func (l *lease) Release(ctx context.Context) error {
	if err := l.Ended(); err != nil {
		return err
	}
	g := l.grant.Load()
	if g.tainted.Load() {
		g.revoke() // what may still come finds no lease then
	}
	resp, doubt, err := l.src.commit(ctx, transaction{
		when: []clientv3.Cmp{l.mine()}, then: []clientv3.Op{clientv3.OpDelete(l.key(lockKind)), clientv3.OpDelete(l.key(lifeKind))},
		or: []clientv3.Op{clientv3.OpGet(l.key(brokeKind))},
	})
	if doubt {
		l.tried.Store(true)
	}
	switch {
	case err != nil:
		return l.fail(ctx, "release", err)
	case !resp.Succeeded && (!l.tried.Load() || isMark(first(resp, 0), l.Record().Token)):
		return l.End(l.Lost(errGone))
	}
	_ = l.End(source.ErrReleased)
	if !g.tainted.Load() && resp.Succeeded {
		l.src.leases.give(g)
	}
	return nil
}

// change writes the record anew, and with it what else is to be done. done says whether other keys
// show that it was made before the lock was lost.
func (l *lease) change(ctx context.Context, op string, set func(*remote.Record), done func(*clientv3.TxnResponse) bool, more transaction) (revision int64, err error) {
	key := l.key(lockKind)
	revision, err = l.changes.Make(l.Holding, errGone, set, func(next remote.Record, before int64) (remote.Shown, error) {
		resp, doubt, err := l.src.commit(ctx, transaction{
			when: []clientv3.Cmp{l.mine(), clientv3.Compare(clientv3.ModRevision(key), "=", before)},
			then: append([]clientv3.Op{clientv3.OpPut(key, next.Encode())}, more.then...),
			or:   append([]clientv3.Op{clientv3.OpGet(key)}, more.or...),
		})
		switch {
		case err != nil:
			return remote.Shown{Doubt: doubt}, l.fail(ctx, op, err)
		case resp.Succeeded:
			return remote.Shown{Mine: true, Step: next.Step, Left: resp.Header.Revision}, nil
		case !l.isMine(first(resp, 0)):
			return remote.Shown{Done: done(resp), Doubt: doubt}, nil
		}
		_, stored := remote.DecodeRecord(next.Token, first(resp, 0).Value)
		return remote.Shown{Mine: true, Step: stored.Step, Left: first(resp, 0).ModRevision, Doubt: doubt}, nil
	})
	if errors.Is(err, remote.ErrAgain) {
		err = l.fail(ctx, op, err)
	}
	return revision, err
}

func nothing(*remote.Record) {}

// unseen is for a change that leaves nothing behind when the lock is another's.
func unseen(*clientv3.TxnResponse) bool { return false }

// MarkJob implements source.Lease.
func (l *lease) MarkJob(ctx context.Context, jobs ...process.Group) error {
	_, err := l.change(ctx, "mark the job", func(r *remote.Record) { r.Groups = jobs }, unseen, transaction{})
	return err
}

// Fence implements source.Lease: the number is the revision of the store in which the record
// was written for it. No other write has it, and all that come later have larger ones.
func (l *lease) Fence(ctx context.Context) (uint64, error) {
	revision, err := l.change(ctx, "draw a fence number", nothing, unseen, transaction{})
	return uint64(max(revision, 0)), err
}
