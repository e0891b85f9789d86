package etcdlock

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// observer watches one lock. What it breaks is what it saw last, and nothing else.
type observer struct {
	src    *Source
	name   string
	maxAge time.Duration

	snap    snapshot // of the last look
	record  source.Record
	watch   source.Watch[int64] // of a lock without a sign of life, by the revision that created it
	verdict source.Verdict
	jobs    process.JobWatch
}

// snapshot is a lock at one instant.
type snapshot struct {
	lock   *keyValue // nil if nobody holds it
	alive  bool      // its holder's sign of life is there
	waiter *keyValue // the first who waits, nil if there is none
	at     boottime.Instant
}

// justNow is how old a snapshot may be that the attempt before a look has made.
const justNow = 20 * time.Millisecond

func (s snapshot) fresh() bool { return !s.at.IsZero() && s.at.Elapsed() < justNow }

// looks are the reads that make a snapshot.
func (o *observer) looks() []clientv3.Op {
	lock, life, tickets := o.keys()
	return []clientv3.Op{
		clientv3.OpGet(lock), clientv3.OpGet(life, clientv3.WithKeysOnly()),
		clientv3.OpGet(tickets, append(clientv3.WithFirstCreate(), clientv3.WithPrefix())...),
	}
}

func snapshotOf(resp *clientv3.TxnResponse) snapshot {
	return snapshot{lock: first(resp, 0), alive: first(resp, 1) != nil, waiter: first(resp, 2), at: boottime.Now()}
}

// Observe implements source.Source.
func (s *Source) Observe(_ context.Context, name string, patience source.Patience) (source.Observer, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	o := s.newObserver(name, patience)
	return &o, nil
}

func (s *Source) newObserver(name string, patience source.Patience) observer {
	return observer{src: s, name: name, maxAge: patience.MaxAge}
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
	resp, err := o.src.read(ctx, "look", o.name, o.looks()...)
	if err != nil {
		o.watch.Interrupt()
		return err
	}
	o.snap = snapshotOf(resp)
	if o.snap.lock == nil || o.snap.alive {
		o.watch = source.Watch[int64]{}
	} else {
		o.watch.Add(o.snap.lock.CreateRevision, start, source.WatchLimits{Gap: time.Hour})
	}
	return nil
}

// sight is what the snapshot shows.
func (o *observer) sight() source.Sighting {
	if o.snap.lock == nil {
		o.record, o.verdict = source.Record{}, source.Verdict{}
		return source.Sighting{State: source.StateFree, Age: source.Unknown, Silence: source.Unknown, Why: "nobody holds it"}
	}
	o.record, _ = readRecord(o.name, o.snap.lock.Value)
	e := o.evidence()
	if o.verdict = judge(e); o.verdict.State != source.StateHeld || e.Holder.Life == process.Gone {
		if e.SearchJob(&o.jobs, o.src.self) {
			o.verdict = judge(e)
		}
	}
	return source.Sighting{
		State: o.verdict.State, Record: o.record, Age: source.Unknown, Silence: e.Silence, Why: o.verdict.Why, Next: o.verdict.Next,
	}
}

// evidence gathers what the verdict rests on. That the sign of life is gone says that there was
// none for the TTL at least, by the server's clock: the lease does not end before.
func (o *observer) evidence() source.Evidence {
	e := source.Evidence{Record: o.record, MaxAge: o.maxAge, Silence: source.Unknown}
	if !o.snap.alive {
		silent := o.record.TTL + o.watch.Unchanged()
		e.Silence, e.Unchanged, e.Watched = silent, silent, silent
	}
	e.AskHost(o.src.self)
	return e
}

// near is how soon a process of this host may end, far how soon a lock may have passed on.
const (
	near = time.Second
	far  = 5 * time.Second
)

// judge decides whether a lock's holder counts as alive. It is a pure function.
func judge(e source.Evidence) source.Verdict {
	if e.Record.Foreign != "" {
		return source.Verdict{State: source.StateHeld, Why: e.Record.Foreign + "; only break --force can clear it", Next: far}
	}
	return e.Judge(source.Rules{Near: near, Far: far, OwnClock: true})
}

// sightOfWaiter is a free lock that the first who waits is about to take. One that died here is
// taken out of the line; elsewhere its lease has to end.
func (c *contender) sightOfWaiter() source.Sighting {
	c.verdict = source.Verdict{}
	r, _ := readRecord(c.name, c.snap.waiter.Value)
	if r.Foreign == "" && r.Holder.Judge(c.src.self).Life == process.Gone {
		(&grant{server: c.src.server, id: clientv3.LeaseID(c.snap.waiter.Lease)}).revoke()
	}
	r.Token = ""
	why := "it is free, and who waits for it comes first"
	if c.snap.waiter.Lease == 0 { // it would stay there for ever
		why = fmt.Sprintf("it is free, and a key is in the way that multilock has not made: remove %q", c.snap.waiter.Key)
	}
	return source.Sighting{State: source.StateHeld, Record: r, Age: source.Unknown, Silence: source.Unknown, Why: why, Next: near}
}

// Break implements source.Observer. It asks for the acquisition that was seen; and if that is
// dead for its silence, for the silence to last.
func (o *observer) Break(ctx context.Context) error {
	if o.verdict.State != source.StateDead {
		return source.ErrHeld
	}
	_, life, _ := o.keys()
	var still []clientv3.Cmp
	if !o.snap.alive {
		still = append(still, absent(life))
	}
	dead, why := o.record, o.verdict.Why
	broken, err := o.remove(ctx, still...)
	if broken {
		// That the history could not be written is no reason to say anything else.
		_ = o.src.Record(ctx, []source.Event{source.BrokeEvent(dead, o.src.self, o.src.user, why)})
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
// it even if the answer to his own release was lost.
func (o *observer) remove(ctx context.Context, still ...clientv3.Cmp) (broken bool, err error) {
	lock, life, _ := o.keys()
	broke := o.src.key(brokeKind, o.name)
	_, w := readRecord(o.name, o.snap.lock.Value)
	t := transaction{
		when: append([]clientv3.Cmp{held(lock, o.snap.lock.CreateRevision)}, still...),
		then: []clientv3.Op{clientv3.OpDelete(lock), clientv3.OpDelete(life)},
		or:   []clientv3.Op{clientv3.OpGet(lock), clientv3.OpGet(broke)},
	}
	if w.Token != "" {
		t.then = append(t.then, clientv3.OpPut(broke, w.Token))
	}
	resp, doubt, err := o.src.commit(ctx, t)
	switch {
	case err != nil:
		return false, o.src.opError(ctx, "break", o.name, err)
	case resp.Succeeded:
		return true, nil
	}
	if now := first(resp, 0); now != nil && now.CreateRevision == o.snap.lock.CreateRevision {
		return false, source.ErrHeld // the holder has shown life since
	}
	return doubt && isMark(first(resp, 1), w.Token), nil
}

// isMark says whether the mark of a break is that of an acquisition.
func isMark(mark *keyValue, token string) bool {
	return mark != nil && token != "" && string(mark.Value) == token
}

// Close implements source.Observer.
func (o *observer) Close() error { return nil }
