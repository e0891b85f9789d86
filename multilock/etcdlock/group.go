package etcdlock

import (
	"context"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

var (
	_ source.Group       = (*Source)(nil)
	_ source.Known       = (*Source)(nil)
	_ source.GroupLister = (*Source)(nil)
	_ source.Queueing    = (*Source)(nil)
)

// Vacant implements source.Group: a count at one revision, which the leader's majority confirms.
func (s *Source) Vacant(ctx context.Context) (bool, error) {
	held, err := s.count(ctx, "ask whether the lock group is empty", lockKind)
	return held == 0 && err == nil, err
}

// Known implements source.Known.
func (s *Source) Known(ctx context.Context) (bool, error) {
	n, err := s.count(ctx, "ask whether the lock group is known", lockKind, resultKind, changesKind, manifestKind, historyKind)
	return n > 0, err
}

// count says how many keys of these kinds the group has.
func (s *Source) count(ctx context.Context, op string, kinds ...string) (n int64, err error) {
	var gets []clientv3.Op
	for _, kind := range kinds {
		gets = append(gets, clientv3.OpGet(s.all(kind), clientv3.WithPrefix(), clientv3.WithCountOnly()))
	}
	resp, err := s.read(ctx, op, "", gets...)
	if err != nil {
		return 0, err
	}
	for _, each := range resp.Responses {
		n += each.GetResponseRange().Count
	}
	return n, nil
}

// Wake implements source.Group.
func (s *Source) Wake() (news <-chan struct{}, stop func()) {
	return s.news(s.all(lockKind), clientv3.WithPrefix())
}

// news tells of what is removed.
func (s *Source) news(key string, opts ...clientv3.OpOption) (<-chan struct{}, func()) {
	ctx, stop := context.WithCancel(context.Background())
	told := remote.NewNews(0)
	go s.removals(ctx, told.Tell, key, opts...)
	return told.Wake(), stop
}

// Groups implements source.GroupLister: those of which there are locks, or were results.
func (s *Source) Groups(ctx context.Context) ([]source.GroupSummary, error) {
	below := func(kind string) clientv3.Op {
		return clientv3.OpGet(s.root+kind+separator, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	}
	kinds := []string{lockKind, changesKind}
	resp, err := s.read(ctx, "list the lock groups", "", below(kinds[0]), below(kinds[1]))
	if err != nil {
		return nil, err
	}
	held := map[string]int{}
	for i, kind := range kinds {
		for _, kv := range got(resp, i) {
			group, _, _ := strings.Cut(strings.TrimPrefix(string(kv.Key), s.root+kind+separator), separator)
			held[group] += 1 - i // a group's changes are not held
		}
	}
	return remote.Summaries(held), nil
}

// Queue implements source.Queueing: tickets are the locks of a source of their own. (Who waits
// for one lock is served in order anyhow; a queue may be the line for several.)
func (s *Source) Queue(name string) (source.Queue, error) {
	if err := s.CheckName(name); err != nil {
		return nil, err
	}
	return queue{&Source{Member: s.Ungrouped(), server: s.server, leases: s.leases, root: s.key(queueKind, name) + separator, silent: true}}, nil
}

// queue is a source of tickets.
type queue struct{ *Source }

// Left implements source.Queue.
func (q queue) Left(ticket string) (news <-chan struct{}, stop func()) {
	return q.news(q.key(lockKind, ticket))
}

// Close implements source.Queue. The connections are the source's.
func (q queue) Close() error { return nil }
