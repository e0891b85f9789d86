package remote

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/multilock/go/multilock/source"
)

// The history of a group is entries that never change: history/GROUP/MILLISECONDS-TOKEN, with a few
// events each, and the time of the latest by the clock of the host that wrote it.
//
// The age of an entry does not depend on the clock of any host, which may be months ahead: the
// server counts days. A day is an entry that expires after 24 hours, or is as old by the server's
// clock. The first write after that begins another day, and adds a mark. Entries older than N marks
// are at least N days old.

const (
	// maxEvents is the maximum number of events in an entry; the maximum size of a value may allow
	// fewer.
	maxEvents = 64
	// kept is the minimum time for which the history is kept.
	kept = 90 * day
	day  = 24 * time.Hour
	// pageSize is how many entries are read at a time, and maxWrites the maximum number of writes
	// in a transaction.
	pageSize  = 500
	maxWrites = 100
)

// Record implements source.Journal. Keys are generated in advance, so a repeated request writes
// nothing twice.
func (t *Table) Record(ctx context.Context, events []source.Event) error {
	if t.silent || len(events) == 0 {
		return nil
	}
	const op = "write the history"
	lists, err := EncodeEvents(events, maxEvents, t.limits.Value)
	if err != nil {
		return t.Named(ctx, op, events[0].Name, err)
	}
	var today *Entry
	for _, l := range lists {
		put := Write{Key: t.historyKey(l.Last) + "-" + source.NewToken(), Value: l.Text}
		a, err := t.apply(ctx, op, events[0].Name, Txn{Then: []Write{put}, Show: []Range{{Key: t.today()}}})
		if err != nil {
			return err
		}
		today = a.first(0)
	}
	if today == nil || today.Silence >= day {
		t.beginDay(ctx, today)
	}
	return nil
}

// today is the key of an entry that exists for a day.
func (t *Table) today() string { return t.key(dayKind, "now") }

// marks is the prefix of the marks of the days.
func (t *Table) marks() string { return t.key(dayKind, "mark") + separator }

// beginDay also removes old entries. If it fails, the next writer does it.
func (t *Table) beginDay(ctx context.Context, over *Entry) {
	unchanged := Cond{Key: t.today(), Field: IfAbsent}
	if over != nil {
		unchanged.Field, unchanged.Number = IfChanged, over.Changed
	}
	a, err := t.store.Apply(ctx, Txn{
		If:   []Cond{unchanged},
		Then: []Write{{Key: t.today(), Value: []byte{}, Ends: day}, {Key: t.marks() + source.NewToken(), Value: []byte{}}},
	})
	if err == nil && a.Done {
		_, _ = t.Expire(ctx, kept)
	}
}

// historyKey is the prefix of the keys of a moment; the keys of later moments sort after it.
func (t *Table) historyKey(moment time.Time) string {
	return t.key(historyKind, fmt.Sprintf("%015d", max(moment.UnixMilli(), 0)))
}

// old lists the entries that are older than keep, and the marks that are no longer needed.
func (t *Table) old(ctx context.Context, keep time.Duration) (history, marks []Entry, err error) {
	const op = "look for old history"
	n := int((keep+day-1)/day) + 1
	a, err := t.show(ctx, op, "", Range{Key: t.marks(), Below: true, Keys: true, Newest: true, Limit: n})
	if err != nil || len(a.Found[0]) < n {
		return nil, nil, err
	}
	before := a.Found[0][n-1].Created
	a, err = t.show(ctx, op, "", Range{Key: t.all(historyKind), Below: true, Keys: true, Before: before}, Range{Key: t.marks(), Below: true, Keys: true, Before: before})
	if err != nil {
		return nil, nil, err
	}
	return a.Found[0], a.Found[1], nil
}

// Expired implements source.Retention: the parts are days, by the clocks of the hosts that wrote
// them.
func (t *Table) Expired(ctx context.Context, keep time.Duration) ([]string, error) {
	history, _, err := t.old(ctx, keep)
	return t.days(history), err
}

func (t *Table) days(history []Entry) (days []string) {
	for _, e := range history {
		text, _, _ := strings.Cut(strings.TrimPrefix(e.Key, t.all(historyKind)), "-")
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			days = append(days, time.UnixMilli(n).UTC().Format(time.DateOnly))
		}
	}
	return slices.Compact(days)
}

// Expire implements source.Retention.
func (t *Table) Expire(ctx context.Context, keep time.Duration) ([]string, error) {
	history, marks, err := t.old(ctx, keep)
	if err != nil {
		return nil, err
	}
	removed := 0
	for chunk := range slices.Chunk(slices.Concat(history, marks), maxWrites) {
		var txn Txn
		for _, e := range chunk {
			txn.Then = append(txn.Then, Write{Key: e.Key})
		}
		if _, err = t.apply(ctx, "remove old history", "", txn); err != nil {
			break
		}
		removed += len(chunk)
	}
	return t.days(history[:min(removed, len(history))]), err
}

// History implements source.Journal. It reads the keys page by page, in the order of their times.
func (t *Table) History(ctx context.Context, since time.Time) iter.Seq2[source.Event, error] {
	from, over := t.historyKey(since), false
	return InOrder(func() (events []source.Event, err error) {
		for !over && len(events) == 0 {
			a, err := t.show(ctx, "read the history", "", Range{Key: t.all(historyKind), Below: true, From: from, Limit: pageSize})
			if err != nil {
				return nil, err
			}
			for _, e := range a.Found[0] {
				from = e.Key + "\x01"
				events = append(events, DecodeEvents(e.Value, since)...)
			}
			over = len(a.Found[0]) < pageSize
		}
		return events, nil
	})
}

// follower decodes the entries of a feed.
type follower struct {
	table *Table
	since time.Time
	feed  Feed
}

// Follow implements source.Journal.
func (t *Table) Follow(since time.Time) source.Follower {
	return &follower{table: t, since: since, feed: t.store.Feed(t.all(historyKind), t.historyKey(since))}
}

// Next implements source.Follower.
func (f *follower) Next(ctx context.Context) (events []source.Event, err error) {
	for len(events) == 0 {
		entries, err := f.feed.Next(ctx)
		if err != nil || len(entries) == 0 {
			return nil, f.table.store.OpError(ctx, "follow the history", "", err)
		}
		for _, e := range entries {
			events = append(events, DecodeEvents(e.Value, f.since)...)
		}
	}
	return events, nil
}

// Close implements source.Follower.
func (f *follower) Close() error { return f.feed.Close() }
