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

	changing sync.Mutex // one change at a time; guards these
	stored   remote.Record
	drawn    int64 // the number of the last change
	changed  int64 // the revision of the last one, as far as is known

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
	l := &lease{Holding: remote.NewHolding(record, g.since()), src: s, created: created, stored: stored, changed: changed, news: remote.NewNews()}
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
		return l.fail(ctx, "renew", errAgain)
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

// change writes the record anew, and with it what else is to be done. Each change has a number,
// and asks for the revision of the one before: it is made once, however often it has to be
// sent, and one that was delayed cannot undo a later one. done says whether other keys show
// that it was made before the lock was lost.
func (l *lease) change(ctx context.Context, op string, set func(*remote.Record), done func(*clientv3.TxnResponse) bool, t transaction) (revision int64, err error) {
	if err := l.Ended(); err != nil {
		return 0, err
	}
	l.changing.Lock()
	defer l.changing.Unlock()
	l.drawn++
	next := l.stored
	next.Step = l.drawn
	set(&next)
	t.then = append(t.then, clientv3.OpPut(l.key(lockKind), next.Encode()))
	t.or = append([]clientv3.Op{clientv3.OpGet(l.key(lockKind))}, t.or...)
	err = errAgain
	unanswered := false
	for try := 0; try < maxAgain && errors.Is(err, errAgain); try++ {
		t.when = []clientv3.Cmp{l.mine(), clientv3.Compare(clientv3.ModRevision(l.key(lockKind)), "=", l.changed)}
		resp, doubt, failed := l.src.commit(ctx, t)
		unanswered = unanswered || doubt
		if err = failed; err == nil {
			err = l.made(resp, unanswered, done)
		}
	}
	switch {
	case err == nil:
		l.stored = next
		return l.changed, nil
	case errors.Is(err, source.ErrLost):
		return 0, err
	case unanswered && inDoubt(err): // it may have been made
		return 0, errors.Join(source.ErrUnsure, l.fail(ctx, op, err))
	}
	return 0, l.fail(ctx, op, err)
}

// made reads what became of a change, and notes the revision that the lock has. The error is
// errAgain if it was not made, and may be.
func (l *lease) made(resp *clientv3.TxnResponse, unanswered bool, done func(*clientv3.TxnResponse) bool) error {
	if resp.Succeeded {
		l.changed = resp.Header.Revision
		return nil
	}
	now := first(resp, 0)
	switch {
	case !l.isMine(now) && unanswered && done(resp):
		return nil
	case !l.isMine(now):
		return l.Lost(errGone)
	}
	l.changed = now.ModRevision
	if _, stored := remote.DecodeRecord(l.Record().Name, now.Value); stored.Step != l.drawn {
		return errAgain
	}
	return nil
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
