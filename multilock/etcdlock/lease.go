package etcdlock

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// lease is a lock that is held. Every write asks for the revision that created it.
type lease struct {
	src     *Source
	record  source.Record
	since   boottime.Instant
	created int64

	changing sync.Mutex // one change at a time; guards these
	wire     wire
	drawn    int64 // the number of the last change
	changed  int64 // the revision of the last one, as far as is known

	tried atomic.Bool // a release was not answered: it may have been carried out

	renewing sync.Mutex // one sign of life at a time: two would give the lock a new lease each

	mu      sync.Mutex
	grant   *grant
	settled error // why the lease has ended, nil if it has not
}

func (s *Source) newLease(name string, w wire, claim source.Claim, g *grant, created, changed int64) *lease {
	return &lease{
		src: s, record: source.Record{Name: name, Token: w.Token, Claim: claim, Prepared: w.Prepared}, since: g.since(),
		created: created, wire: w, changed: changed, grant: g,
	}
}

var _ source.Lease = (*lease)(nil)

// Record implements source.Lease.
func (l *lease) Record() source.Record { return l.record }

// Since implements source.Lease.
func (l *lease) Since() boottime.Instant { return l.since }

func (l *lease) key(kind string) string { return l.src.key(kind, l.record.Name) }

// mine compares that the lock is this lease's.
func (l *lease) mine() clientv3.Cmp { return held(l.key(lockKind), l.created) }

// minRenewal is the least time that a renewal is given: a busy server, or host, takes some
// hundred milliseconds.
const minRenewal = time.Second

// Renew implements source.Lease: a sign of life and a look at the lock, side by side.
func (l *lease) Renew(ctx context.Context) error {
	if err := l.ended(); err != nil {
		return err
	}
	l.renewing.Lock()
	defer l.renewing.Unlock()
	limit := max(l.record.TTL/4, minRenewal)
	g := l.leased()
	beaten := make(chan error, 1)
	go func() { beaten <- g.renew(ctx, limit) }()
	resp, _, err := l.src.commit(ctx, transaction{onlyWithin: limit, then: []clientv3.Op{
		clientv3.OpGet(l.key(lockKind), clientv3.WithKeysOnly()), clientv3.OpGet(l.key(lifeKind), clientv3.WithKeysOnly()),
	}})
	beat := <-beaten
	switch {
	case err != nil:
		return l.src.opError(ctx, "renew", l.record.Name, err)
	case !l.isMine(first(resp, 0)):
		return l.lost()
	case leaseGone(beat), beat == nil && !g.carries(first(resp, 1)):
		return l.revive(ctx, limit, first(resp, 1))
	}
	return l.src.opError(ctx, "renew", l.record.Name, beat)
}

func (l *lease) isMine(kv *keyValue) bool { return kv != nil && kv.CreateRevision == l.created }

// revive gives a lock that nobody has broken yet a new lease: a server that was restored, or
// lost its leases in another way, takes nobody's lock away. The lease is granted now, for the
// belief in the lock counts from now; and the sign of life is the one that was seen, so that
// what is carried out late does not take the place of a later one.
func (l *lease) revive(ctx context.Context, limit time.Duration, seen *keyValue) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	g := l.src.leases.grant(ctx, l.record.TTL)
	if _, err := g.wait(limited); err != nil {
		return l.src.opError(ctx, "renew", l.record.Name, err)
	}
	life, before := l.key(lifeKind), int64(0)
	if seen != nil {
		before = seen.ModRevision
	}
	resp, doubt, err := l.src.commit(ctx, transaction{
		onlyWithin: limit, when: []clientv3.Cmp{l.mine(), clientv3.Compare(clientv3.ModRevision(life), "=", before)},
		then: []clientv3.Op{clientv3.OpPut(life, "", clientv3.WithLease(g.id))},
		or:   []clientv3.Op{clientv3.OpGet(l.key(lockKind), clientv3.WithKeysOnly()), clientv3.OpGet(life, clientv3.WithKeysOnly())},
	})
	if doubt {
		g.tainted.Store(true)
	}
	switch {
	case err != nil:
	case resp.Succeeded, l.isMine(first(resp, 0)) && g.carries(first(resp, 1)):
	case l.isMine(first(resp, 0)):
		err = errAgain
	default:
		return l.lost()
	}
	if err != nil {
		return l.src.opError(ctx, "renew", l.record.Name, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grant = g
	return nil
}

func (l *lease) leased() *grant {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.grant
}

// Release implements source.Lease. After an answer that was lost, nothing to be released is
// what the first try has left, unless the lock was broken: whoever does that leaves its token.
func (l *lease) Release(ctx context.Context) error {
	if err := l.ended(); err != nil {
		return err
	}
	g := l.leased()
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
		return l.src.opError(ctx, "release", l.record.Name, err)
	case !resp.Succeeded && (!l.tried.Load() || isMark(first(resp, 0), l.record.Token)):
		return l.end(l.lost())
	}
	_ = l.end(source.ErrReleased)
	if !g.tainted.Load() && resp.Succeeded {
		l.src.leases.give(g)
	}
	return nil
}

// change writes the record anew, and with it what else is to be done. Each change has a number,
// and asks for the revision of the one before: it is made once, however often it has to be
// sent, and one that was delayed cannot undo a later one. done says whether other keys show
// that it was made before the lock was lost.
func (l *lease) change(ctx context.Context, op string, set func(*wire), done func(*clientv3.TxnResponse) bool, t transaction) (revision int64, err error) {
	if err := l.ended(); err != nil {
		return 0, err
	}
	l.changing.Lock()
	defer l.changing.Unlock()
	l.drawn++
	next := l.wire
	next.Step = l.drawn
	set(&next)
	t.then = append(t.then, clientv3.OpPut(l.key(lockKind), next.encode()))
	t.or = append([]clientv3.Op{clientv3.OpGet(l.key(lockKind))}, t.or...)
	unanswered := false
	for range maxAgain {
		t.when = []clientv3.Cmp{l.mine(), clientv3.Compare(clientv3.ModRevision(l.key(lockKind)), "=", l.changed)}
		resp, doubt, err := l.src.commit(ctx, t)
		unanswered = unanswered || doubt
		if err != nil {
			return 0, l.unless(unanswered && inDoubt(err), ctx, op, err)
		}
		if made, err := l.made(resp, unanswered, done); made || err != nil {
			if made {
				l.wire = next
			}
			return l.changed, err
		}
	}
	return 0, l.unless(unanswered, ctx, op, errAgain)
}

// unless is an error that leaves it open whether the change was made, if that is so.
func (l *lease) unless(unsure bool, ctx context.Context, op string, err error) error { //nolint:revive // the context is a detail here
	err = l.src.opError(ctx, op, l.record.Name, err)
	if unsure {
		return errors.Join(source.ErrUnsure, err)
	}
	return err
}

// made reads what became of a change, and notes the revision that the lock has.
func (l *lease) made(resp *clientv3.TxnResponse, unanswered bool, done func(*clientv3.TxnResponse) bool) (bool, error) {
	if resp.Succeeded {
		l.changed = resp.Header.Revision
		return true, nil
	}
	now := first(resp, 0)
	if !l.isMine(now) {
		if unanswered && done(resp) {
			return true, nil
		}
		return false, l.lost()
	}
	l.changed = now.ModRevision
	_, w := readRecord(l.record.Name, now.Value)
	return w.Step == l.drawn, nil
}

func nothing(*wire) {}

// unseen is for a change that leaves nothing behind when the lock is another's.
func unseen(*clientv3.TxnResponse) bool { return false }

// MarkJob implements source.Lease.
func (l *lease) MarkJob(ctx context.Context, jobs ...process.Group) error {
	_, err := l.change(ctx, "mark the job", func(w *wire) { w.Groups = jobs }, unseen, transaction{})
	return err
}

// Fence implements source.Lease: the number is the revision of the store in which the record
// was written for it. No other write has it, and all that come later have larger ones.
func (l *lease) Fence(ctx context.Context) (uint64, error) {
	revision, err := l.change(ctx, "draw a fence number", nothing, unseen, transaction{})
	return uint64(max(revision, 0)), err
}

func (l *lease) lost() error {
	return &source.LostError{Name: l.record.Name, Silence: l.since.Elapsed(), Err: errGone}
}

// ended says why the lease has ended.
func (l *lease) ended() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.settled
}

// end ends the lease, and returns why.
func (l *lease) end(why error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settled = why
	return why
}

// Close implements source.Lease: the sign of life goes when its time is over.
func (l *lease) Close() error {
	if l.ended() == nil {
		_ = l.end(source.ErrReleased)
	}
	return nil
}
