package etcdlock

import (
	"context"
	"fmt"
	"iter"
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
//
// How old they are no host's clock decides: one that is months ahead would take for old what
// is young. A day lasts as long as a key that hangs on a lease of that time; whoever writes when it
// is gone begins another, and leaves a mark. What was written before so many marks were is at
// least as many days old.

const (
	// mostEvents are those of one key, and fewer if they are so long that they are more than a part:
	// a request may have 1.5 MB.
	mostEvents = 64
	// kept is for how long the history is kept at least.
	kept = 90 * day
	day  = 24 * time.Hour
	// pageSize is how many keys are read at a time, and mostOps how many a transaction may change.
	pageSize = 500
	mostOps  = 100
)

var (
	_ source.Journal   = (*Source)(nil)
	_ source.Retention = (*Source)(nil)
)

// Record implements source.Journal. However often it has to be sent, it is there once.
func (s *Source) Record(ctx context.Context, events []source.Event) error {
	if s.silent || len(events) == 0 {
		return nil
	}
	lists, err := remote.EncodeEvents(events, mostEvents, partSize)
	over := false // the day
	for _, l := range lists {
		put := clientv3.OpPut(s.historyKey(l.Last)+"-"+source.NewToken(), string(l.Text))
		var resp *clientv3.TxnResponse
		if resp, _, err = s.commit(ctx, transaction{then: []clientv3.Op{put, clientv3.OpGet(s.today())}}); err != nil {
			break
		}
		over = first(resp, 1) == nil
	}
	if over {
		s.beginDay(ctx)
	}
	return s.opError(ctx, "write the history", events[0].Name, err)
}

// today is a key that is there for a day.
func (s *Source) today() string { return s.key(dayKind, "now") }

// marks is what the marks of the days begin with.
func (s *Source) marks() string { return s.key(dayKind, "mark") + separator }

// beginDay also removes what is too old. That it fails is no failure of who wrote: the next one does it.
func (s *Source) beginDay(ctx context.Context) {
	g := s.leases.grant(ctx, day)
	if _, err := g.wait(ctx); err != nil {
		return
	}
	resp, _, err := s.commit(ctx, transaction{
		when: []clientv3.Cmp{absent(s.today())},
		then: []clientv3.Op{clientv3.OpPut(s.today(), "", clientv3.WithLease(g.id)), clientv3.OpPut(s.marks()+source.NewToken(), "")},
	})
	if err == nil && resp.Succeeded {
		_, _ = s.Expire(ctx, kept)
	}
}

// historyKey is what the keys of a moment begin with, and of later ones are behind.
func (s *Source) historyKey(moment time.Time) string {
	return s.key(historyKind, fmt.Sprintf("%015d", max(moment.UnixMilli(), 0)))
}

// old are the keys of the history that are older than keep, and the marks that are not needed
// any more.
func (s *Source) old(ctx context.Context, keep time.Duration) (history, marks []*keyValue, err error) {
	const op = "look for old history"
	n := int64((keep+day-1)/day) + 1
	last := []clientv3.OpOption{clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithLimit(n), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortDescend)}
	resp, err := s.read(ctx, op, "", clientv3.OpGet(s.marks(), last...))
	if err != nil || int64(len(got(resp, 0))) < n {
		return nil, nil, err
	}
	before := got(resp, 0)[n-1].CreateRevision - 1
	earlier := []clientv3.OpOption{clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithMaxCreateRev(before)}
	resp, err = s.read(ctx, op, "", clientv3.OpGet(s.all(historyKind), earlier...), clientv3.OpGet(s.marks(), earlier...))
	if err != nil {
		return nil, nil, err
	}
	return got(resp, 0), got(resp, 1), nil
}

// Expired implements source.Retention: the parts are days, by the clocks of the hosts that wrote
// them.
func (s *Source) Expired(ctx context.Context, keep time.Duration) ([]string, error) {
	history, _, err := s.old(ctx, keep)
	return s.days(history), err
}

func (s *Source) days(history []*keyValue) (days []string) {
	for _, kv := range history {
		text, _, _ := strings.Cut(strings.TrimPrefix(string(kv.Key), s.all(historyKind)), "-")
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			days = append(days, time.UnixMilli(n).UTC().Format(time.DateOnly))
		}
	}
	return slices.Compact(days)
}

// Expire implements source.Retention.
func (s *Source) Expire(ctx context.Context, keep time.Duration) ([]string, error) {
	history, marks, err := s.old(ctx, keep)
	if err != nil {
		return nil, err
	}
	removed := 0
	for chunk := range slices.Chunk(append(history[:len(history):len(history)], marks...), mostOps) {
		var t transaction
		for _, kv := range chunk {
			t.then = append(t.then, clientv3.OpDelete(string(kv.Key)))
		}
		if _, _, err = s.commit(ctx, t); err != nil {
			break
		}
		removed += len(chunk)
	}
	return s.days(history[:min(removed, len(history))]), s.opError(ctx, "remove old history", "", err)
}

// History implements source.Journal. The keys are in the order of their times, and a page is
// read after the other.
func (s *Source) History(ctx context.Context, since time.Time) iter.Seq2[source.Event, error] {
	f := follower{src: s, since: since, from: s.historyKey(since)}
	return remote.InOrder(func() ([]source.Event, error) { return f.past(ctx) })
}
