package etcdlock

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// The history of a group is keys that are never changed: HISTORY/MILLISECONDS-TOKEN, with the
// time of their latest event by the clock of the host that wrote them, and a few events each.

const (
	// mostEvents are those of one key, and fewer if they are so long that they are more than a part:
	// a request may have 1.5 MB.
	mostEvents = 64
	// kept is for how long the history is kept; one write of sweepOneIn removes what is older.
	kept       = 90 * 24 * time.Hour
	sweepOneIn = 50
	// pageSize is how many keys are read at a time.
	pageSize = 500
)

var (
	_ source.Journal   = (*Source)(nil)
	_ source.Retention = (*Source)(nil)
)

// Record implements source.Journal. However often it has to be sent, it is there once.
func (s *Source) Record(ctx context.Context, events []source.Event) error {
	for chunk := range slices.Chunk(events, mostEvents) {
		if err := s.record(ctx, chunk); err != nil {
			return err
		}
	}
	return nil
}

// record writes the events of a key, or of two if they are too long for one.
func (s *Source) record(ctx context.Context, events []source.Event) error {
	const op = "write the history"
	bounded := make([]source.Event, len(events))
	for i, e := range events {
		bounded[i] = e.Bounded()
	}
	text, err := json.Marshal(bounded)
	switch half := len(events) / 2; {
	case err != nil:
		return s.opError(ctx, op, events[0].Name, err)
	case s.silent:
		return nil
	case len(text) > partSize && half > 0:
		if err := s.record(ctx, events[:half]); err != nil {
			return err
		}
		return s.record(ctx, events[half:])
	}
	last := remote.Latest(events)
	t := transaction{then: []clientv3.Op{clientv3.OpPut(s.historyKey(last)+"-"+source.NewToken(), string(text))}}
	old := time.Now().Add(-kept)
	if last.After(old) && rand.N(sweepOneIn) == 0 { //nolint:gosec // who does it needs no secrecy
		t.then = append(t.then, s.dropHistory(old))
	}
	_, _, err = s.commit(ctx, t)
	return s.opError(ctx, op, events[0].Name, err)
}

// dropHistory removes what was before a moment.
func (s *Source) dropHistory(before time.Time) clientv3.Op {
	return clientv3.OpDelete(s.historyKey(time.UnixMilli(0)), clientv3.WithRange(s.historyKey(before)))
}

// historyKey is what the keys of a moment begin with, and of later ones are behind.
func (s *Source) historyKey(moment time.Time) string {
	return s.key(historyKind, fmt.Sprintf("%015d", max(moment.UnixMilli(), 0)))
}

// historyEnd is behind all of them.
func (s *Source) historyEnd() string { return clientv3.GetPrefixRangeEnd(s.all(historyKind)) }

// History implements source.Chronicle. The keys are in the order of their times, and a page is
// read after the other.
func (s *Source) History(ctx context.Context, since time.Time) iter.Seq2[source.Event, error] {
	f := follower{src: s, since: since, from: s.historyKey(since)}
	return remote.InOrder(func() ([]source.Event, error) { return f.past(ctx) })
}

// follower reads what is there, and then what a watch tells.
type follower struct {
	src   *Source
	since time.Time
	from  string // where to read on, "" once all that was there was read
	at    int64  // the revision as of which it is read, 0 before
	told  chan clientv3.WatchResponse
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
		case resp, open := <-f.told:
			if !open { // the watch has ended: what came since is read anew
				f.stop()
				f.told = nil
				return f.catchUp(ctx)
			}
			var events []source.Event
			for _, e := range resp.Events {
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

// page reads some of what was there in the beginning, all as of one revision.
func (f *follower) page(ctx context.Context) ([]source.Event, error) {
	get := []clientv3.OpOption{clientv3.WithRange(f.src.historyEnd()), clientv3.WithLimit(pageSize), clientv3.WithRev(f.at)}
	var resp *clientv3.GetResponse
	_, err := f.src.repeat(ctx, f.src.timeout, func(ctx context.Context, c *clientv3.Client) (err error) {
		resp, err = c.Get(ctx, f.from, get...)
		return err
	})
	if err != nil {
		return nil, f.src.opError(ctx, "follow the history", "", err)
	}
	if f.at == 0 {
		f.at = resp.Header.Revision
	}
	var events []source.Event
	for _, kv := range resp.Kvs {
		events = append(events, remote.DecodeEvents(kv.Value, f.since)...)
		f.from = string(kv.Key) + "\x00"
	}
	if !resp.More {
		f.from = ""
	}
	return events, nil
}

// catchUp reads what was written since the revision that was seen last.
func (f *follower) catchUp(ctx context.Context) ([]source.Event, error) {
	resp, err := f.src.read(ctx, "follow the history", "",
		clientv3.OpGet(f.src.all(historyKind), clientv3.WithPrefix(), clientv3.WithMinCreateRev(f.at+1), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend)))
	if err != nil {
		return nil, err
	}
	var events []source.Event
	for _, kv := range got(resp, 0) {
		events = append(events, remote.DecodeEvents(kv.Value, f.since)...)
	}
	f.at = resp.Header.Revision
	return events, nil
}

func (f *follower) watch() {
	ctx, stop := context.WithCancel(context.Background())
	told := make(chan clientv3.WatchResponse, pageSize)
	f.told, f.stop = told, stop
	go func(from int64) {
		defer close(told)
		client, err := f.src.connect()
		if err != nil {
			return
		}
		for resp := range client.Watch(clientv3.WithRequireLeader(ctx), f.src.all(historyKind), clientv3.WithPrefix(), clientv3.WithRev(from)) {
			select {
			case told <- resp:
			case <-ctx.Done():
				return
			}
		}
	}(f.at + 1)
}

// Close implements source.Follower.
func (f *follower) Close() error {
	if f.stop != nil {
		f.stop()
	}
	return nil
}

// Expired implements source.Retention: the parts are days, by the clocks of the hosts that wrote
// them and by this one's.
func (s *Source) Expired(ctx context.Context, keep time.Duration) ([]string, error) {
	resp, err := s.read(ctx, "look for old history", "",
		clientv3.OpGet(s.historyKey(time.UnixMilli(0)), clientv3.WithRange(s.historyKey(time.Now().Add(-keep))), clientv3.WithKeysOnly()))
	if err != nil {
		return nil, err
	}
	var days []string
	for _, kv := range got(resp, 0) {
		text, _, _ := strings.Cut(strings.TrimPrefix(string(kv.Key), s.all(historyKind)), "-")
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			days = append(days, time.UnixMilli(n).UTC().Format(time.DateOnly))
		}
	}
	return slices.Compact(days), nil
}

// Expire implements source.Retention.
func (s *Source) Expire(ctx context.Context, keep time.Duration) ([]string, error) {
	days, err := s.Expired(ctx, keep)
	if err != nil || len(days) == 0 {
		return nil, err
	}
	if _, _, err = s.commit(ctx, transaction{then: []clientv3.Op{s.dropHistory(time.Now().Add(-keep))}}); err != nil {
		return nil, s.opError(ctx, "remove old history", "", err)
	}
	return days, nil
}
