package etcdlock

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// lock is one lock in the store.
type lock struct {
	src  *Source
	name string
	life clientv3.LeaseID // the holder's as it was seen last, 0 if it had ended
}

// Observe implements source.Source.
func (s *Source) Observe(_ context.Context, name string, policy source.StalePolicy) (source.Observer, error) {
	return remote.NewObserver(s, &lock{src: s, name: name}, name, policy)
}

func (l *lock) key(kind string) string { return l.src.key(kind, l.name) }

// tickets is what all tickets begin with.
func (l *lock) tickets() string { return l.key(waitKind) + separator }

// looks are the reads that show a lock at one instant.
func (l *lock) looks() []clientv3.Op {
	return []clientv3.Op{
		clientv3.OpGet(l.key(lockKind)), clientv3.OpGet(l.key(lifeKind), clientv3.WithKeysOnly()),
		clientv3.OpGet(l.tickets(), append(clientv3.WithFirstCreate(), clientv3.WithPrefix())...),
	}
}

// seen is what the answer has shown that begins with those to looks. That the sign of life is gone says
// that there was none for the TTL at least, by the server's clock: the lease does not end before.
func (l *lock) seen(resp *clientv3.TxnResponse) remote.Seen {
	l.life = 0
	seen := remote.Seen{Age: source.Unknown, Silence: source.Unknown}
	if kv := first(resp, 0); kv != nil {
		r, stored := remote.DecodeRecord(l.name, kv.Value)
		seen.Held, seen.Record, seen.Sign, seen.Lease = true, r, remote.Sign{Token: stored.Token, Count: kv.CreateRevision}, process.Gone
		if life := first(resp, 1); life != nil {
			seen.Lease, l.life = process.Alive, clientv3.LeaseID(life.Lease)
		}
	}
	if kv := first(resp, 2); kv != nil {
		seen.Waiter = l.waiter(kv)
	}
	return seen
}

func (l *lock) waiter(ticket *keyValue) *remote.Waiter {
	r, _ := remote.DecodeRecord(l.name, ticket.Value)
	w := &remote.Waiter{ID: string(ticket.Key), Record: r, Leave: func(context.Context) { l.src.revoke(clientv3.LeaseID(ticket.Lease)) }}
	if ticket.Lease == 0 { // it would stay there for ever
		w.Why = fmt.Sprintf("a key is in the way that multilock has not made: remove %q", ticket.Key)
	}
	return w
}

// See implements remote.Lock.
func (l *lock) See(ctx context.Context) (remote.Seen, error) {
	resp, err := l.src.read(ctx, "look", l.name, l.looks()...)
	if err != nil {
		return remote.Seen{}, err
	}
	return l.seen(resp), nil
}

// Remove implements remote.Lock. It asks for the acquisition that was seen; and if that is dead for its
// silence, for the silence to last. In the end it ends the holder's lease, on which he will not hold any
// other lock: so he learns it at his next sign of life, however late that request is.
func (l *lock) Remove(ctx context.Context, seen remote.Seen, still bool) (freed remote.Freed, err error) {
	t := l.freeing(seen.Sign.Count)
	if still && seen.Lease == process.Gone {
		t.when = append(t.when, absent(l.key(lifeKind)))
	}
	if seen.Sign.Token != "" {
		t.then = append(t.then, clientv3.OpPut(l.key(brokeKind), seen.Sign.Token))
	}
	if freed, err = l.free(ctx, "break", t, seen.Sign); (freed.Done || freed.Doubt && freed.Marked) && l.life != 0 {
		l.src.revoke(l.life)
	}
	return freed, err
}

// freeing removes the lock that was created in a revision.
func (l *lock) freeing(created int64) transaction {
	return transaction{
		when: []clientv3.Cmp{held(l.key(lockKind), created)},
		then: []clientv3.Op{clientv3.OpDelete(l.key(lockKind)), clientv3.OpDelete(l.key(lifeKind))},
		or:   []clientv3.Op{clientv3.OpGet(l.key(lockKind)), clientv3.OpGet(l.key(brokeKind))},
	}
}

// free carries that out, of the acquisition that a sign is of.
func (l *lock) free(ctx context.Context, op string, t transaction, of remote.Sign) (remote.Freed, error) {
	resp, doubt, err := l.src.commit(ctx, t)
	if err != nil {
		return remote.Freed{Doubt: doubt}, l.src.opError(ctx, op, l.name, err)
	}
	if resp.Succeeded {
		return remote.Freed{Done: true}, nil
	}
	now, mark := first(resp, 0), first(resp, 1)
	return remote.Freed{
		Held: now != nil && now.CreateRevision == of.Count, Marked: mark != nil && of.Token != "" && string(mark.Value) == of.Token, Doubt: doubt,
	}, nil
}
