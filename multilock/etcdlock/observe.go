package etcdlock

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// observer watches one lock; while it has no sign of life, by the revision that created it.
type observer struct {
	remote.Observer[int64]
	src  *Source
	snap snapshot // of the last look
}

// snapshot is a lock at one instant.
type snapshot struct {
	lock   *keyValue // nil if nobody holds it
	life   *keyValue // its holder's sign of life, nil if there is none
	waiter *keyValue // the first who waits, nil if there is none
	at     boottime.Instant
}

// justNow is how old a snapshot may be that the attempt before a look has made.
const justNow = 20 * time.Millisecond

func (s snapshot) fresh() bool { return !s.at.IsZero() && s.at.Elapsed() < justNow }

// keys are the lock's, its holder's sign of life, and what all tickets begin with.
func (o *observer) keys() (lock, life, tickets string) {
	return o.src.key(lockKind, o.Name), o.src.key(lifeKind, o.Name), o.src.key(waitKind, o.Name) + separator
}

// looks are the reads that make a snapshot.
func (o *observer) looks() []clientv3.Op {
	lock, life, tickets := o.keys()
	return []clientv3.Op{
		clientv3.OpGet(lock), clientv3.OpGet(life, clientv3.WithKeysOnly()),
		clientv3.OpGet(tickets, append(clientv3.WithFirstCreate(), clientv3.WithPrefix())...),
	}
}

func snapshotOf(resp *clientv3.TxnResponse) snapshot {
	return snapshot{lock: first(resp, 0), life: first(resp, 1), waiter: first(resp, 2), at: boottime.Now()}
}

// Observe implements source.Source.
func (s *Source) Observe(_ context.Context, name string, patience source.Patience) (source.Observer, error) {
	if err := s.CheckName(name); err != nil {
		return nil, err
	}
	o := s.newObserver(name, patience)
	return &o, nil
}

func (s *Source) newObserver(name string, patience source.Patience) observer {
	return observer{Observer: remote.NewObserver[int64](s.Self(), name, patience), src: s}
}

// Look implements source.Observer.
func (o *observer) Look(ctx context.Context) (source.Sighting, error) {
	if err := o.ask(ctx); err != nil {
		return source.Sighting{}, err
	}
	return o.sight(), nil
}

func (o *observer) ask(ctx context.Context) error {
	start := boottime.Now()
	resp, err := o.src.read(ctx, "look", o.Name, o.looks()...)
	if err != nil {
		o.Watch.Interrupt()
		return err
	}
	o.snap = snapshotOf(resp)
	if o.snap.lock == nil || o.snap.life != nil {
		o.Watch = source.Watch[int64]{}
	} else {
		o.Watch.Add(o.snap.lock.CreateRevision, start, source.WatchLimits{Gap: time.Hour})
	}
	return nil
}

// sight is what the snapshot shows. That the sign of life is gone says that there was none for the
// TTL at least, by the server's clock: the lease does not end before.
func (o *observer) sight() source.Sighting {
	if o.snap.lock == nil {
		return o.Free()
	}
	o.Record, _ = remote.DecodeRecord(o.Name, o.snap.lock.Value)
	e := o.Evidence()
	if o.snap.life == nil {
		silent := o.Record.TTL + o.Watch.Unchanged()
		e.Silence, e.Unchanged, e.Watched = silent, silent, silent
	}
	return o.Conclude(e, remote.Judge)
}

// sightOfWaiter is a free lock that the first who waits is about to take. One that died here is
// taken out of the line; elsewhere its lease has to end.
func (c *contender) sightOfWaiter() source.Sighting {
	c.Verdict = source.Verdict{}
	r, _ := remote.DecodeRecord(c.Name, c.snap.waiter.Value)
	if r.Foreign == "" && r.Holder.Judge(c.src.Self()).Life == process.Gone {
		c.src.revoke(clientv3.LeaseID(c.snap.waiter.Lease))
	}
	r.Token = ""
	why := "it is free, and who waits for it comes first"
	if c.snap.waiter.Lease == 0 { // it would stay there for ever
		why = fmt.Sprintf("it is free, and a key is in the way that multilock has not made: remove %q", c.snap.waiter.Key)
	}
	return source.Sighting{State: source.StateHeld, Record: r, Age: source.Unknown, Silence: source.Unknown, Why: why, Next: remote.Near}
}

// Break implements source.Observer. It asks for the acquisition that was seen; and if that is
// dead for its silence, for the silence to last.
func (o *observer) Break(ctx context.Context) error {
	if o.Verdict.State != source.StateDead {
		return source.ErrHeld
	}
	_, life, _ := o.keys()
	var still []clientv3.Cmp
	if o.snap.life == nil {
		still = append(still, absent(life))
	}
	broken, err := o.remove(ctx, still...)
	if broken {
		// That the history could not be written is no reason to say anything else.
		_ = o.src.Record(ctx, o.src.Broke(o.Record, o.Verdict.Why))
	}
	return err
}

// Force implements source.Observer. It leaves the history to its caller, who knows why.
func (o *observer) Force(ctx context.Context) error {
	if o.snap.lock == nil {
		return source.ErrFree
	}
	_, err := o.remove(ctx)
	return err
}

// remove frees the lock that the last look saw, and leaves its token, so that its holder learns
// it even if the answer to his own release was lost. Then it ends his lease, on which he will not
// hold any other lock: so he learns it at his next sign of life, however late that request is.
func (o *observer) remove(ctx context.Context, still ...clientv3.Cmp) (broken bool, err error) {
	if broken, err = o.clear(ctx, still...); broken && o.snap.life != nil {
		o.src.revoke(clientv3.LeaseID(o.snap.life.Lease))
	}
	return broken, err
}

func (o *observer) clear(ctx context.Context, still ...clientv3.Cmp) (broken bool, err error) {
	lock, life, _ := o.keys()
	broke := o.src.key(brokeKind, o.Name)
	_, stored := remote.DecodeRecord(o.Name, o.snap.lock.Value)
	t := transaction{
		when: append([]clientv3.Cmp{held(lock, o.snap.lock.CreateRevision)}, still...),
		then: []clientv3.Op{clientv3.OpDelete(lock), clientv3.OpDelete(life)},
		or:   []clientv3.Op{clientv3.OpGet(lock), clientv3.OpGet(broke)},
	}
	if stored.Token != "" {
		t.then = append(t.then, clientv3.OpPut(broke, stored.Token))
	}
	resp, doubt, err := o.src.commit(ctx, t)
	switch {
	case err != nil:
		return false, o.src.opError(ctx, "break", o.Name, err)
	case resp.Succeeded:
		return true, nil
	}
	if now := first(resp, 0); now != nil && now.CreateRevision == o.snap.lock.CreateRevision {
		return false, source.ErrHeld // the holder has shown life since
	}
	return doubt && isMark(first(resp, 1), stored.Token), nil
}

// isMark says whether the mark of a break is that of an acquisition.
func isMark(mark *keyValue, token string) bool {
	return mark != nil && token != "" && string(mark.Value) == token
}
