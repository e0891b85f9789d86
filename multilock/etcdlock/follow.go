package etcdlock

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// follower reads what is there, and then what a watch tells.
type follower struct {
	src   *Source
	since time.Time
	from  string // where to read on, "" once all that was there was read
	at    int64  // the revision as of which it is read, 0 before; what comes later a watch tells
	seen  int64  // what was read before this reading began, 0 for nothing
	told  chan []*clientv3.Event
	stop  context.CancelFunc
}

// Follow implements source.Journal.
func (s *Source) Follow(since time.Time) source.Follower {
	return &follower{src: s, since: since, from: s.historyKey(since)}
}

// Next implements source.Follower. If there is nothing new, nobody is asked.
func (f *follower) Next(ctx context.Context) ([]source.Event, error) {
	if events, err := f.past(ctx); err != nil || len(events) > 0 {
		return events, err
	}
	if f.told == nil {
		f.watch()
	}
	for {
		select {
		case told, open := <-f.told:
			if !open { // the watch has ended: what came since is read anew
				f.stop()
				f.told, f.from, f.seen, f.at = nil, f.src.historyKey(f.since), f.at, 0
				return f.past(ctx)
			}
			var events []source.Event
			for _, e := range told {
				if f.at = max(f.at, e.Kv.ModRevision); e.IsCreate() {
					events = append(events, remote.DecodeEvents(e.Kv.Value, f.since)...)
				}
			}
			if len(events) > 0 {
				return events, nil
			}
		default:
			return nil, ctx.Err()
		}
	}
}

// past reads what was there in the beginning, until something is found.
func (f *follower) past(ctx context.Context) (events []source.Event, err error) {
	for f.from != "" && len(events) == 0 && err == nil {
		events, err = f.page(ctx)
	}
	return events, err
}

func (f *follower) page(ctx context.Context) (events []source.Event, err error) {
	end := clientv3.GetPrefixRangeEnd(f.src.all(historyKind))
	resp, err := f.src.read(ctx, "read the history", "", clientv3.OpGet(f.from, clientv3.WithRange(end), clientv3.WithLimit(pageSize)))
	if err != nil {
		return nil, err
	}
	if f.at == 0 {
		f.at = resp.Header.Revision
	}
	for _, kv := range got(resp, 0) {
		if f.from = string(kv.Key) + "\x00"; f.seen < kv.CreateRevision && kv.CreateRevision <= f.at {
			events = append(events, remote.DecodeEvents(kv.Value, f.since)...)
		}
	}
	if len(got(resp, 0)) < pageSize {
		f.from = ""
	}
	return events, nil
}

func (f *follower) watch() {
	ctx, stop := context.WithCancel(context.Background())
	told := make(chan []*clientv3.Event, pageSize)
	f.told, f.stop = told, stop
	go func(from int64) {
		defer close(told)
		f.src.watch(ctx, func(events []*clientv3.Event) {
			select {
			case told <- events:
			case <-ctx.Done():
			}
		}, f.src.all(historyKind), clientv3.WithPrefix(), clientv3.WithRev(from))
	}(f.at + 1)
}

// Close implements source.Follower.
func (f *follower) Close() error {
	if f.stop != nil {
		f.stop()
	}
	return nil
}
