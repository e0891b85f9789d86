package etcdlock

import (
	"context"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

type keyValue = mvccpb.KeyValue

var _ remote.Store = (*server)(nil)

// Apply implements remote.Store with one transaction. A lock's heartbeat is a separate key under a
// lease, so the lock's record outlasts the lease, and can be read.
func (s *server) Apply(ctx context.Context, t remote.Txn) (a remote.Applied, err error) {
	var when []clientv3.Cmp
	for _, c := range t.If {
		when = append(when, compare(c))
	}
	then, err := s.writes(ctx, t.Then)
	if err != nil {
		return a, err
	}
	or, err := s.writes(ctx, t.Else)
	if err != nil {
		return a, err
	}
	var shown []clientv3.Op
	for _, r := range t.Show {
		shown = append(shown, get(r))
		if r.Life != "" {
			shown = append(shown, clientv3.OpGet(r.Life, clientv3.WithKeysOnly()))
		}
	}
	var resp *clientv3.TxnResponse
	a.Doubt, err = s.repeat(ctx, t.Limit, func(ctx context.Context, c *clientv3.Client) (err error) {
		a.Since = boottime.Now()
		resp, err = c.Txn(ctx).If(when...).Then(append(then, shown...)...).Else(append(or, shown...)...).Commit()
		return err
	})
	if err != nil {
		return a, err
	}
	a.Done, a.Revision = resp.Succeeded, resp.Header.Revision
	next := len(resp.Responses) - len(shown)
	found := func() []*keyValue {
		next++
		return resp.Responses[next-1].GetResponseRange().Kvs
	}
	for _, r := range t.Show {
		entries := entriesOf(found())
		if r.Life != "" {
			life := found()
			for i := range entries {
				if entries[i].Life = process.Gone; len(life) > 0 {
					entries[i].Life, entries[i].Pulse = process.Alive, life[0].Lease
				}
			}
		}
		a.Found = append(a.Found, entries)
	}
	return a, nil
}

func compare(c remote.Cond) clientv3.Cmp {
	created := clientv3.CreateRevision(c.Key)
	switch c.Field {
	case remote.IfExists:
		return clientv3.Compare(created, ">", 0)
	case remote.IfCreated:
		return clientv3.Compare(created, "=", c.Number)
	case remote.IfChanged:
		return clientv3.Compare(clientv3.ModRevision(c.Key), "=", c.Number)
	case remote.IfValue:
		return clientv3.Compare(clientv3.Value(c.Key), "=", string(c.Value))
	case remote.IfSilent:
		return clientv3.Compare(clientv3.CreateRevision(c.Life), "=", 0)
	case remote.IfFirst:
		if c.Number > 0 {
			return clientv3.Compare(created, ">", c.Number-1).WithPrefix()
		}
		return clientv3.Compare(created, "=", 0).WithPrefix()
	}
	return clientv3.Compare(created, "=", 0)
}

// writes returns the operations of some writes. An entry with an end needs a lease first.
func (s *server) writes(ctx context.Context, writes []remote.Write) (ops []clientv3.Op, err error) {
	for _, w := range writes {
		var under []clientv3.OpOption
		switch p, _ := w.Pulse.(*pulse); {
		case p != nil:
			under = append(under, clientv3.WithLease(p.grant.Load().id))
		case w.Ends > 0:
			g := s.leases.grant(ctx, w.Ends)
			if _, err := g.wait(ctx); err != nil {
				return nil, err
			}
			under = append(under, clientv3.WithLease(g.id))
		}
		switch {
		case w.Beat > 0: // the lease has the heartbeat
		case w.Below:
			ops = append(ops, clientv3.OpDelete(w.Key, clientv3.WithPrefix()))
		case w.Value == nil:
			ops = append(ops, clientv3.OpDelete(w.Key))
			if w.Life != "" {
				ops = append(ops, clientv3.OpDelete(w.Life))
			}
		case w.Life != "":
			ops = append(ops, clientv3.OpPut(w.Key, string(w.Value)), clientv3.OpPut(w.Life, "", under...))
		default:
			ops = append(ops, clientv3.OpPut(w.Key, string(w.Value), under...))
		}
	}
	return ops, nil
}

func get(r remote.Range) clientv3.Op {
	var opts []clientv3.OpOption
	first := r.Key
	switch {
	case r.From > r.Key:
		first = r.From
		opts = append(opts, clientv3.WithRange(clientv3.GetPrefixRangeEnd(r.Key)))
	case r.Below:
		opts = append(opts, clientv3.WithPrefix())
	}
	switch {
	case r.Oldest:
		opts = append(opts, clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
	case r.Newest:
		opts = append(opts, clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortDescend))
	}
	if r.Before > 0 {
		opts = append(opts, clientv3.WithMaxCreateRev(r.Before-1))
	}
	if r.Keys {
		opts = append(opts, clientv3.WithKeysOnly())
	}
	return clientv3.OpGet(first, append(opts, clientv3.WithLimit(int64(r.Limit)))...)
}

func entriesOf(kvs []*keyValue) (entries []remote.Entry) {
	for _, kv := range kvs {
		entries = append(entries, remote.Entry{
			Key: string(kv.Key), Value: kv.Value, Created: kv.CreateRevision, Changed: kv.ModRevision, Version: kv.Version,
			Pulse: kv.Lease, Age: source.Unknown, Silence: source.Unknown,
		})
	}
	return entries
}

// Removals implements remote.Store.
func (s *server) Removals(key string, below bool) (news <-chan struct{}, end func()) {
	var opts []clientv3.OpOption
	if below {
		opts = append(opts, clientv3.WithPrefix())
	}
	ctx, stop := context.WithCancel(context.Background())
	told := remote.NewNews(0)
	go s.removals(ctx, told.Tell, key, opts...)
	return told.Wake(), stop
}

// removals calls tell for each removal, until the watch ends.
func (s *server) removals(ctx context.Context, tell func(), key string, opts ...clientv3.OpOption) {
	client, err := s.connect()
	if err != nil {
		return
	}
	for resp := range client.Watch(clientv3.WithRequireLeader(ctx), key, append(opts, clientv3.WithFilterPut())...) {
		if len(resp.Events) > 0 {
			tell()
		}
	}
}

// feed reads the existing entries, and then those that a watch reports.
type feed struct {
	*server
	below, from string
	next        string // the next key, "" once all existing entries were read
	at          int64  // the revision that is read, 0 before; the watch reports later ones
	seen        int64  // the revision up to which entries were returned earlier, 0 for none
	news        clientv3.WatchChan
	stop        context.CancelFunc
}

// Feed implements remote.Store.
func (s *server) Feed(below, from string) remote.Feed {
	return &feed{server: s, below: below, from: from, next: from, stop: func() {}}
}

// pageSize is how many keys are read at a time.
const pageSize = 500

// Next implements remote.Feed. If there are no new entries, it sends no request.
func (f *feed) Next(ctx context.Context) ([]remote.Entry, error) {
	if entries, err := f.past(ctx); err != nil || len(entries) > 0 {
		return entries, err
	}
	if f.news == nil {
		client, err := f.connect()
		if err != nil {
			return nil, err
		}
		var own context.Context
		own, f.stop = context.WithCancel(context.WithoutCancel(ctx))
		f.news = client.Watch(clientv3.WithRequireLeader(own), f.below, clientv3.WithPrefix(), clientv3.WithRev(f.at+1))
	}
	for {
		select {
		case resp, open := <-f.news:
			if !open || resp.Err() != nil { // the watch has ended: read what was added since
				f.stop()
				f.news, f.next, f.seen, f.at = nil, f.from, f.at, 0
				return f.past(ctx)
			}
			var created []*keyValue
			for _, e := range resp.Events {
				if f.at = max(f.at, e.Kv.ModRevision); e.IsCreate() {
					created = append(created, e.Kv)
				}
			}
			if len(created) > 0 {
				return entriesOf(created), nil
			}
		default:
			return nil, ctx.Err()
		}
	}
}

// past reads pages of the entries that existed at the beginning, until one has new entries.
func (f *feed) past(ctx context.Context) (entries []remote.Entry, err error) {
	for f.next != "" && len(entries) == 0 {
		a, err := f.Apply(ctx, remote.Txn{Show: []remote.Range{{Key: f.below, Below: true, From: f.next, Limit: pageSize}}})
		if err != nil {
			return nil, err
		}
		if f.at == 0 {
			f.at = a.Revision
		}
		for _, e := range a.Found[0] {
			if f.next = e.Key + "\x00"; f.seen < e.Created && e.Created <= f.at {
				entries = append(entries, e)
			}
		}
		if len(a.Found[0]) < pageSize {
			f.next = ""
		}
	}
	return entries, nil
}

// Close implements remote.Feed.
func (f *feed) Close() error {
	f.stop()
	return nil
}
