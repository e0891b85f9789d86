package etcdlock

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// lease is a lock that is held. Every write asks for the revision that created it.
type lease struct {
	*remote.Lease
	lock
	acquired remote.Sign

	renewing sync.Mutex // one sign of life at a time: two would give the lock a new lease each
	looked   int64      // the last revision in which the lock was seen, 0 before the first; guarded by it
	grant    atomic.Pointer[grant]
	news     *remote.News // of the lock's removal
	watched  atomic.Bool
}

var _ source.Committer = (*lease)(nil)

// Gone implements remote.Hold.
func (l *lease) Gone() error { return errGone }

// mine compares that the lock is this lease's.
func (l *lease) mine() clientv3.Cmp { return held(l.key(lockKind), l.acquired.Count) }

func (l *lease) isMine(kv *keyValue) bool { return kv != nil && kv.CreateRevision == l.acquired.Count }

const (
	renew = "renew"
	// unlooked is how long a watch is believed that tells nothing of the lock.
	unlooked = 10 * time.Minute
)

// Beat implements remote.Hold. That it is accepted shows that the lock was not broken for silence,
// and whoever breaks it by force ends the lease, too. He may die in between, or the key be removed
// by hand: of that a watch tells, and then the lock is looked at.
func (l *lease) Beat(ctx context.Context, limit time.Duration) (mine bool, err error) {
	l.renewing.Lock()
	defer l.renewing.Unlock()
	g := l.grant.Load()
	beat := g.renew(ctx, limit)
	if beat == nil && l.looked == 0 {
		l.guard(l.acquired.Count)
	}
	if beat == nil && l.news.Quiet() || beat != nil && !leaseGone(beat) {
		return beat == nil, l.src.opError(ctx, renew, l.name, beat)
	}
	l.news.Begin()
	resp, _, err := l.src.commit(ctx, transaction{onlyWithin: limit, then: l.signs()})
	if err != nil || !l.isMine(first(resp, 0)) {
		return false, l.src.opError(ctx, renew, l.name, err)
	}
	l.guard(resp.Header.Revision)
	if beat == nil && g.carries(first(resp, 1)) {
		return true, nil
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
		l.src.removals(ctx, l.news.Tell, l.key(lockKind), clientv3.WithRev(revision+1))
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
func (l *lease) revive(ctx context.Context, limit time.Duration, seen *keyValue) (mine bool, err error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	g := l.src.leases.grant(ctx, l.Record().TTL)
	if _, err := g.wait(limited); err != nil {
		return false, l.src.opError(ctx, renew, l.name, err)
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
	case resp.Succeeded, l.isMine(first(resp, 0)) && g.carries(first(resp, 1)):
		l.grant.Store(g)
		return true, nil
	case l.isMine(first(resp, 0)):
		err = remote.ErrAgain
	}
	return false, l.src.opError(ctx, renew, l.name, err)
}

// Free implements remote.Hold.
func (l *lease) Free(ctx context.Context) (remote.Freed, error) {
	g := l.grant.Load()
	if g.tainted.Load() {
		g.revoke() // what may still come finds no lease then
	}
	freed, err := l.free(ctx, "release", l.freeing(l.acquired.Count), l.acquired)
	if freed.Done && !g.tainted.Load() {
		l.src.leases.give(g)
	}
	return freed, err
}

// Write implements remote.Hold. The last result of a name is a key beside its lock: nobody can take the
// lock and not see it.
func (l *lease) Write(ctx context.Context, op string, c remote.Change) (remote.Shown, error) {
	key, result := l.key(lockKind), l.key(resultKind)
	t := transaction{
		when: []clientv3.Cmp{l.mine(), clientv3.Compare(clientv3.ModRevision(key), "=", c.Before)},
		then: []clientv3.Op{clientv3.OpPut(key, c.Record.Encode())},
		or:   []clientv3.Op{clientv3.OpGet(key), clientv3.OpGet(result)},
	}
	switch {
	case c.Forget:
		t.then = append(t.then, clientv3.OpDelete(result), l.src.touch())
	case c.Result != nil:
		t.then = append(t.then, clientv3.OpPut(result, string(c.Result)), l.src.touch())
	}
	resp, doubt, err := l.src.commit(ctx, t)
	switch {
	case err != nil:
		return remote.Shown{Doubt: doubt}, l.src.opError(ctx, op, l.name, err)
	case resp.Succeeded:
		return remote.Shown{Mine: true, Step: c.Record.Step, Left: resp.Header.Revision}, nil
	case l.isMine(first(resp, 0)):
		_, stored := remote.DecodeRecord(l.name, first(resp, 0).Value)
		return remote.Shown{Mine: true, Step: stored.Step, Left: first(resp, 0).ModRevision, Doubt: doubt}, nil
	}
	there := valueOf(first(resp, 1))
	return remote.Shown{Done: c.Result != nil && string(there) == string(c.Result), Doubt: doubt}, nil
}

// ReadResult implements remote.Hold.
func (l *lease) ReadResult(ctx context.Context) (result []byte, mine bool, err error) {
	resp, err := l.src.read(ctx, "ask for the result", l.name, clientv3.OpGet(l.key(lockKind), clientv3.WithKeysOnly()), clientv3.OpGet(l.key(resultKind)))
	if err != nil {
		return nil, false, err
	}
	return valueOf(first(resp, 1)), l.isMine(first(resp, 0)), nil
}

// Fence implements source.Lease: the number is the revision of the store in which the record
// was written for it. No other write has it, and all that come later have larger ones.
func (l *lease) Fence(ctx context.Context) (uint64, error) {
	revision, err := l.Change(ctx, "draw a fence number", func(*remote.Change) {})
	return uint64(max(revision, 0)), err
}
