package pglock

import (
	"context"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// lock is one lock in the tables.
type lock struct {
	src  *Source
	name string
}

// Observe implements source.Source.
func (s *Source) Observe(_ context.Context, name string, policy source.StalePolicy) (source.Observer, error) {
	return remote.NewObserver(s, lock{s, name}, name, policy)
}

// look are the statements that show a lock at one instant. They are simple: planning them costs more
// than anything else.
func (l lock) look() []statement {
	return []statement{
		l.src.sql(`SELECT `+micros+`, token, beats, record, (extract(epoch FROM clock_timestamp() - acquired) * 1000000)::bigint,
			(extract(epoch FROM clock_timestamp() - seen) * 1000000)::bigint, server = pg_postmaster_start_time()
			FROM (SELECT) AS now LEFT JOIN @lock ON grp = $1 AND name = $2`, l.src.group, l.name),
		l.src.sql(`SELECT mark, record FROM @wait w WHERE grp = $1 AND name = $2 AND `+waits+` ORDER BY id LIMIT 1`, l.src.group, l.name),
	}
}

// seen is what the answers have shown that end with those to look. The server's clock is believed, unless
// another server has dated the last sign of life, or this one before it was started anew: just then the
// holder cannot give any, and the clock may be another one.
func (l lock) seen(answers []answer) (seen remote.Seen) {
	r, waiters := answers[len(answers)-2].rows[0], answers[len(answers)-1].rows
	l.src.clock.set(r.number(0))
	if !r.isNull(1) {
		seen = remote.Seen{Held: true, Sign: remote.Sign{Token: r.text(1), Count: r.number(2)}, Age: r.micros(4), Silence: r.micros(5), OneClock: r.is(6)}
		seen.Record, _ = remote.DecodeRecord(l.name, r[3])
	}
	if len(waiters) > 0 {
		mark := waiters[0].text(0)
		first, _ := remote.DecodeRecord(l.name, waiters[0][1])
		seen.Waiter = &remote.Waiter{ID: mark, Record: first, Leave: func(ctx context.Context) {
			_, _ = l.src.do(ctx, "pass over who waits", l.name, l.src.leave(mark), l.src.tellNext(l.name))
		}}
	}
	return seen
}

// See implements remote.Lock.
func (l lock) See(ctx context.Context) (remote.Seen, error) {
	answers, err := l.src.do(ctx, "look", l.name, l.look()...)
	if err != nil {
		return remote.Seen{}, err
	}
	return l.seen(answers), nil
}

// Remove implements remote.Lock.
func (l lock) Remove(ctx context.Context, seen remote.Seen, still bool) (remote.Freed, error) {
	token, beats := seen.Sign.Token, int64(-1) // any number
	if still {
		beats = seen.Sign.Count
	}
	answers, doubt, err := l.src.request(ctx, "break", l.name, l.src.timeout,
		l.src.sql(`WITH gone AS (DELETE FROM @lock WHERE grp = $1 AND name = $2 AND token = $3 AND (beats = $4::bigint OR $4::bigint < 0) RETURNING token)
			INSERT INTO @broken (grp, name, token) SELECT $1, $2, token FROM gone ON CONFLICT (grp, name) DO UPDATE SET token = excluded.token`,
			l.src.group, l.name, token, beats),
		l.src.tellNext(l.name),
		l.src.sql(`SELECT (SELECT token FROM @lock WHERE grp = $1 AND name = $2), (SELECT token FROM @broken WHERE grp = $1 AND name = $2)`, l.src.group, l.name))
	if err != nil {
		return remote.Freed{}, err
	}
	now := answers[2].rows[0]
	return remote.Freed{Done: answers[0].changed > 0, Held: now.text(0) == token, Marked: now.text(1) == token, Doubt: doubt}, nil
}
