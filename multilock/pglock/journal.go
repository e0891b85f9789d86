package pglock

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

const (
	// kept is for how many days the history is kept; one write of sweepOneIn removes what is older.
	kept       = 90
	sweepOneIn = 50
	// pageSize is how many events are read at a time.
	pageSize = 500
)

var (
	_ source.Journal   = (*Source)(nil)
	_ source.Retention = (*Source)(nil)
)

// Record implements source.Journal. However often it has to be sent, each event is there once.
func (s *Source) Record(ctx context.Context, events []source.Event) error {
	if s.quiet || len(events) == 0 {
		return nil
	}
	const op = "write the history"
	var statements []statement
	write := source.NewToken()
	for i, e := range events {
		text, err := json.Marshal(e.Bounded())
		if err != nil {
			return s.opError(ctx, op, e.Name, err)
		}
		statements = append(statements, s.sql(`INSERT INTO @history (grp, id, at, event) VALUES ($1, $2, to_timestamp($3::bigint / 1000000.0), $4)
			ON CONFLICT (grp, id) DO NOTHING`, s.group, fmt.Sprintf("%s-%06d", write, i), e.Time.UnixMicro(), string(text)))
	}
	if rand.N(sweepOneIn) == 0 { //nolint:gosec // who does it needs no secrecy
		statements = append(statements, s.sql(`DELETE FROM @history WHERE grp = $1 AND `+older, s.group, int64(kept*24*3600)))
	}
	_, err := s.do(ctx, op, events[0].Name, statements...)
	return err
}

// older finds what is older than so many seconds, by the server's clock.
const older = `at < clock_timestamp() - $2::bigint * interval '1 second'`

// History implements source.Journal, oldest first. A page is read after the other.
func (s *Source) History(ctx context.Context, since time.Time) iter.Seq2[source.Event, error] {
	at, id, n := since.UnixMicro(), "", pageSize
	return remote.InOrder(func() (events []source.Event, err error) {
		for n == pageSize && len(events) == 0 && err == nil {
			var rows []row
			rows, err = s.ask(ctx, "read the history", "", s.sql(`SELECT (extract(epoch FROM at) * 1000000)::bigint, id, event FROM @history
				WHERE grp = $1 AND (at, id) > (to_timestamp($2::bigint / 1000000.0), $3) ORDER BY at, id LIMIT `+strconv.Itoa(pageSize), s.group, at, id))
			for _, r := range rows {
				at, id = r.number(0), r.text(1)
				events = append(events, event(r[2], since)...)
			}
			n = len(rows)
		}
		return events, err
	})
}

// event is the one of a text, unless it cannot be understood, or was before a moment.
func event(text []byte, since time.Time) []source.Event {
	return remote.DecodeEvents([]byte("["+string(text)+"]"), since)
}

// follower reads what is there, in passes. A pass reads all that one snapshot of the database shows,
// and the one of the pass before did not: so nothing is read twice, and nothing is missed that was
// written by a transaction which began early and ended late.
type follower struct {
	src        *Source
	since      time.Time
	prior, now string // snapshots; now is "" between two passes
	xid, id    string // how far the pass has come
}

// Follow implements source.Journal.
func (s *Source) Follow(since time.Time) source.Follower {
	return &follower{src: s, since: since, prior: "1:1:", xid: "0"}
}

// Next implements source.Follower. If there is nothing new, that takes one request.
func (f *follower) Next(ctx context.Context) ([]source.Event, error) {
	for {
		now := any(f.now)
		if f.now == "" {
			now = nil
		}
		rows, err := f.src.ask(ctx, "follow the history", "", f.src.sql(`SELECT s.now, h.xid, h.id, h.event
			FROM (SELECT coalesce($1::pg_snapshot, pg_current_snapshot()) AS now) s LEFT JOIN LATERAL (
				SELECT xid, id, event FROM @history WHERE grp = $2 AND at >= to_timestamp($3::bigint / 1000000.0) AND (xid, id) > ($4::xid8, $5)
				AND xid >= pg_snapshot_xmin($6::pg_snapshot) AND NOT pg_visible_in_snapshot(xid, $6::pg_snapshot)
				AND xid < pg_snapshot_xmax(s.now) AND pg_visible_in_snapshot(xid, s.now)
				ORDER BY xid, id LIMIT `+strconv.Itoa(pageSize)+`) h ON true`, now, f.src.group, f.since.UnixMicro(), f.xid, f.id, f.prior))
		if err != nil {
			return nil, err
		}
		f.now = rows[0].text(0)
		var events []source.Event
		for _, r := range rows {
			if !r.isNull(1) {
				f.xid, f.id = r.text(1), r.text(2)
				events = append(events, event(r[3], f.since)...)
			}
		}
		over := len(rows) < pageSize
		if over {
			f.prior, f.now, f.xid, f.id = f.now, "", "0", ""
		}
		if over || len(events) > 0 {
			return events, nil
		}
	}
}

// Close implements source.Follower.
func (f *follower) Close() error { return nil }

// Expired implements source.Retention: the parts are days.
func (s *Source) Expired(ctx context.Context, keep time.Duration) ([]string, error) {
	return s.list(ctx, "look for old history",
		`SELECT DISTINCT to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD') FROM @history WHERE grp = $1 AND `+older+` ORDER BY 1`, int64(keep/time.Second))
}

// Expire implements source.Retention.
func (s *Source) Expire(ctx context.Context, keep time.Duration) ([]string, error) {
	days, err := s.Expired(ctx, keep)
	if err != nil || len(days) == 0 {
		return nil, err
	}
	if _, err = s.do(ctx, "remove old history", "", s.sql(`DELETE FROM @history WHERE grp = $1 AND `+older, s.group, int64(keep/time.Second))); err != nil {
		return nil, err
	}
	return days, nil
}
