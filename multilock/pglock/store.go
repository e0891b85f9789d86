package pglock

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/source/remote"
)

var _ remote.Store = (*server)(nil)

// Apply implements remote.Store. All statements are sent at once, as one transaction.
func (s *server) Apply(ctx context.Context, t remote.Txn) (a remote.Applied, err error) {
	var answers []answer
	decided := 0
	answers, a.Doubt, err = s.request(ctx, len(t.Then) == 0, t.Limit, func() (all []statement) {
		a.Since = boottime.Now()
		all, decided = s.statements(t)
		return all
	})
	if errors.Is(err, errUnmade) {
		return remote.Applied{Done: true, Found: make([][]remote.Entry, len(t.Show))}, nil
	}
	if err != nil {
		return a, err
	}
	a.Done = len(t.If) == 0
	if !a.Done {
		now := answers[decided][0]
		s.clock.set(now.number(1))
		a.Done = now.text(0) == "true"
	}
	queries, which := s.reads(t.Show)
	found := answers[len(answers)-len(queries):]
	for i, r := range t.Show {
		entries, err := entriesOf(found[which[i]])
		if !r.Below {
			entries = slices.DeleteFunc(entries, func(e remote.Entry) bool { return e.Key != r.Key })
		}
		if err != nil {
			return a, err
		}
		a.Found = append(a.Found, entries)
	}
	return a, nil
}

// reads returns the queries for ranges, with a single one for all ranges of one entry, and for each
// range the index of its query.
func (s *server) reads(ranges []remote.Range) (queries []statement, which []int) {
	var single values
	var places []string
	for _, r := range ranges {
		if !r.Below {
			places = append(places, single.add(r.Key))
		}
	}
	if len(places) > 0 {
		queries = append(queries, s.sql(`SELECT key, encode(value, 'hex')`+columns+` FROM @entry WHERE key IN (`+strings.Join(places, `, `)+`)`, single...))
	}
	for _, r := range ranges {
		if !r.Below {
			which = append(which, 0)
			continue
		}
		which = append(which, len(queries))
		queries = append(queries, s.read(r))
	}
	return queries, which
}

// values are the parameters of a statement.
type values []any

// add appends a parameter, and returns its placeholder.
func (v *values) add(value any) string {
	*v = append(*v, value)
	return "$" + strconv.Itoa(len(*v))
}

// statements returns the statements of a transaction. One of them decides whether the conditions
// hold; an advisory lock on the first key serialises such transactions, so the decision still holds
// when the writes are made. Writes of locks and tickets have a deadline by the server's clock: an
// attempt that arrives later, when its contender has given up, changes nothing.
func (s *server) statements(t remote.Txn) (all []statement, decided int) {
	then, or := "", ""
	if len(t.Then) > 0 && len(t.If) == 0 {
		all = append(all, statement{text: `SELECT ` + synchronous})
	}
	if len(t.If) > 0 {
		all = append(all, s.sql(`SELECT pg_advisory_xact_lock(hashtextextended($1, 0)), `+synchronous, s.named+" "+t.If[0].Key))
		var v values
		var conds []string
		for _, c := range t.If {
			if c.Field == remote.IfSilent { // wait for a heartbeat that is being written
				all = append(all, s.sql(`SELECT FROM @entry WHERE key = $1 FOR UPDATE`, c.Key))
			}
			conds = append(conds, holds(c, &v))
		}
		if slices.ContainsFunc(t.Then, func(w remote.Write) bool { return w.Pulse != nil }) {
			conds = append(conds, micros+` < `+v.add(s.clock.after(longestTry))+`::bigint`)
		}
		decided = len(all)
		all = append(all, s.sql(`SELECT set_config('multilock.done', (`+strings.Join(conds, ` AND `)+`)::text, true), `+micros, v...))
		then, or = ` AND current_setting('multilock.done') = 'true'`, ` AND current_setting('multilock.done') = 'false'`
	}
	for _, w := range t.Then {
		all = append(all, s.write(w, then)...)
	}
	for _, w := range t.Else {
		all = append(all, s.write(w, or)...)
	}
	queries, _ := s.reads(t.Show)
	return append(all, queries...), decided
}

// synchronous makes the commit wait for the disk, and for synchronous standbys, whatever the user's
// default is.
const synchronous = `set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true)`

// holds returns the expression for a condition.
func holds(c remote.Cond, v *values) string {
	key := v.add(c.Key)
	there := `EXISTS (SELECT FROM @entry WHERE key = ` + key
	switch c.Field {
	case remote.IfExists:
		return there + `)`
	case remote.IfCreated:
		return there + ` AND created = ` + v.add(c.Number) + `::bigint)`
	case remote.IfChanged:
		return there + ` AND changed = ` + v.add(c.Number) + `::bigint)`
	case remote.IfSilent:
		return there + ` AND beats = ` + v.add(c.Number) + `::bigint)`
	case remote.IfValue:
		return there + ` AND value = ` + v.add(c.Value) + `::bytea)`
	case remote.IfFirst:
		first := `NOT EXISTS (SELECT FROM @entry w WHERE w.key >= ` + key + ` AND w.key < ` + v.add(end(c.Key)) + ` AND ` + alive
		if c.Number > 0 {
			first += ` AND w.created < ` + v.add(c.Number) + `::bigint`
		}
		return first + `)`
	}
	return `NOT ` + there + `)`
}

// end returns the first key after those that begin with below, which ends with a slash.
func end(below string) string { return strings.TrimSuffix(below, "/") + "0" }

// revision is unique, and larger than those before. A server that has lost the last numbers (it was
// restored, or is a standby that was promoted) issues different ones, because of the random bits.
const revision = `(SELECT (nextval($5::regclass) << 20) | floor(random() * 1048576)::bigint AS n) r`

// write returns the statements of a write that is made if a condition holds, which begins with AND.
func (s *server) write(w remote.Write, when string) []statement {
	switch {
	case w.Beat > 0:
		return []statement{s.sql(`UPDATE @entry SET seen = clock_timestamp(), beats = beats + 1, server = pg_postmaster_start_time()
			WHERE key = $1 AND created = $2::bigint`+when, w.Key, w.Beat)}
	case w.Below:
		return []statement{s.sql(`DELETE FROM @entry WHERE key >= $1 AND key < $2`+when, w.Key, end(w.Key))}
	case w.Value == nil:
		gone := []statement{s.sql(`DELETE FROM @entry WHERE key = $1`+when, w.Key)}
		if w.Tell != "" {
			gone = append(gone, s.sql(`SELECT pg_notify(channel, key) FROM (SELECT channel, key FROM @entry w WHERE key >= $1 AND key < $2
				AND channel IS NOT NULL AND `+alive+` ORDER BY created LIMIT 1) first WHERE true`+when, w.Tell, end(w.Tell)))
		}
		return gone
	}
	var channel, listener any
	if w.Pulse != nil && w.Life == "" { // a ticket
		channel, listener = s.waiters.channel, s.waiters.listener.Load()
		when += ` AND ` + micros + ` < ` + strconv.FormatInt(s.clock.after(longestTry), 10)
	}
	key := w.Key
	if w.Shared {
		key += strconv.Itoa(os.Getpid() % 8)
	}
	return []statement{s.sql(`INSERT INTO @entry AS e (key, value, created, changed, channel, listener)
		SELECT $1, $2::bytea, r.n, r.n, $3, $4::int FROM `+revision+` WHERE true`+when+`
		ON CONFLICT (key) DO UPDATE SET value = excluded.value, changed = excluded.changed, version = e.version + 1, seen = clock_timestamp()`,
		key, w.Value, channel, listener, s.schema+"revision")}
}

// read returns the query for the entries below a key.
func (s *server) read(r remote.Range) statement {
	var v values
	value, order, limit := `encode(value, 'hex')`, `key`, ``
	if r.Keys {
		value = `''`
	}
	where := `key >= ` + v.add(max(r.Key, r.From)) + ` AND key < ` + v.add(end(r.Key))
	if r.Before > 0 {
		where += ` AND created < ` + v.add(r.Before) + `::bigint`
	}
	if r.Alive {
		where += ` AND ` + alive
	}
	switch {
	case r.Oldest:
		order = `created`
	case r.Newest:
		order = `created DESC`
	}
	if r.Limit > 0 {
		limit = ` LIMIT ` + strconv.Itoa(r.Limit)
	}
	return s.sql(`SELECT key, `+value+columns+` FROM @entry w WHERE `+where+` ORDER BY `+order+limit, v...)
}

// columns are the other columns of an entry.
const columns = `, created, changed, version, beats, (channel IS NOT NULL)::int, (extract(epoch FROM clock_timestamp() - at) * 1000000)::bigint,
	(extract(epoch FROM clock_timestamp() - seen) * 1000000)::bigint, server = pg_postmaster_start_time()`

// entriesOf decodes rows. OneClock is false if the last heartbeat was dated by another server, or
// by this one before a restart: a holder could not send any in between, and the clock may have
// changed.
func entriesOf(rows []row) (entries []remote.Entry, err error) {
	for _, r := range rows {
		value, err := hex.DecodeString(r.text(1))
		if err != nil {
			return nil, err
		}
		entries = append(entries, remote.Entry{
			Key: r.text(0), Value: value, Created: r.number(2), Changed: r.number(3), Version: r.number(4), Beats: r.number(5),
			Pulse: r.number(6), Age: r.micros(7), Silence: r.micros(8), OneClock: r.is(9),
		})
	}
	return entries, nil
}

// Stop implements remote.Store: a holder depends on nothing but its row.
func (s *server) Stop(int64) {}

// Removals implements remote.Store. It is not supported: only the waiters of a lock are notified.
func (s *server) Removals(string, bool) (news <-chan struct{}, stop func()) { return nil, func() {} }

// feed reads in passes. A pass reads the entries that are visible in its snapshot of the database,
// and were not in the snapshot of the pass before. So it reads nothing twice, and misses no
// transaction that began early and committed late.
type feed struct {
	*server
	below, from string
	prior, now  string // snapshots; now is "" between two passes
	xid, key    string // the last entry that the pass has read
}

// Feed implements remote.Store.
func (s *server) Feed(below, from string) remote.Feed {
	return &feed{server: s, below: below, from: from, prior: "1:1:", xid: "0"}
}

// pageSize is how many entries are read at a time.
const pageSize = 500

// Next implements remote.Feed. If there are no new entries, it takes one request.
func (f *feed) Next(ctx context.Context) ([]remote.Entry, error) {
	now := any(f.now)
	if f.now == "" {
		now = nil
	}
	query := f.sql(fmt.Sprintf(`SELECT h.*, s.now FROM (SELECT coalesce($1::pg_snapshot, pg_current_snapshot()) AS now) s LEFT JOIN LATERAL (
		SELECT key, encode(value, 'hex')%s, xid FROM @entry WHERE %s AND key >= $2 AND key < $3 AND (xid, key) > ($4::xid8, $5)
			AND xid >= pg_snapshot_xmin($6::pg_snapshot) AND NOT pg_visible_in_snapshot(xid, $6::pg_snapshot)
			AND xid < pg_snapshot_xmax(s.now) AND pg_visible_in_snapshot(xid, s.now)
			ORDER BY xid, key LIMIT %d) h ON true`, columns, fed, pageSize), now, max(f.below, f.from), end(f.below), f.xid, f.key, f.prior)
	answers, _, err := f.request(ctx, true, 0, func() []statement { return []statement{query} })
	if errors.Is(err, errUnmade) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	rows := answers[0]
	last := rows[len(rows)-1]
	f.now, f.xid, f.key = last.text(len(last)-1), last.text(len(last)-2), last.text(0)
	if len(rows) < pageSize {
		f.prior, f.now, f.xid, f.key = f.now, "", "0", ""
	}
	if last.isNull(0) {
		return nil, nil
	}
	return entriesOf(rows)
}

// Close implements remote.Feed.
func (f *feed) Close() error { return nil }
