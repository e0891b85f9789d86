package pglock

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// lease is a lock that is held. Every write asks for its token.
type lease struct {
	*remote.Holding
	src *Source

	changes *remote.Changes
	tried   atomic.Bool // a release was not answered: it may have been carried out
}

func (s *Source) newLease(name string, a attempt, claim source.Claim) *lease {
	record := source.Record{Name: name, Token: a.stored.Token, Claim: claim, Prepared: a.stored.Prepared}
	return &lease{Holding: remote.NewHolding(record, a.at), src: s, changes: remote.NewChanges(a.stored, 0)}
}

var errGone = errors.New("its row is not there any more: the lock was broken or removed, or the server has lost it")

func (l *lease) lost() error { return l.Lost(errGone) }

func (l *lease) fail(ctx context.Context, op string, err error) error {
	return l.src.opError(ctx, op, l.Record().Name, err)
}

// sql is a statement whose first parameters are the group, the name and the token.
func (l *lease) sql(text string, more ...any) statement {
	r := l.Record()
	return l.src.sql(text, append([]any{l.src.group, r.Name, r.Token}, more...)...)
}

const mine = ` grp = $1 AND name = $2 AND token = $3 `

// living is a sign of life.
const living = `UPDATE @lock SET seen = clock_timestamp(), beats = beats + 1, server = pg_postmaster_start_time() WHERE` + mine

// Renew implements source.Lease.
func (l *lease) Renew(ctx context.Context) error {
	if err := l.Ended(); err != nil {
		return err
	}
	answers, _, err := l.src.repeat(ctx, remote.RenewalLimit(l.Record().TTL), l.sql(living))
	switch {
	case err != nil:
		return l.fail(ctx, "renew", err)
	case answers[0].changed == 0:
		return l.lost()
	}
	return nil
}

// Release implements source.Lease. After an answer that was lost, nothing to be released is what
// the first try has left, unless the lock was broken: whoever does that leaves its token.
func (l *lease) Release(ctx context.Context) error {
	if err := l.Ended(); err != nil {
		return err
	}
	r := l.Record()
	answers, doubt, err := l.src.repeat(ctx, l.src.timeout, l.sql(`DELETE FROM @lock WHERE`+mine), l.src.tellNext(r.Name))
	if doubt {
		l.tried.Store(true)
	}
	var broken []row
	if err == nil && answers[0].changed == 0 && l.tried.Load() {
		broken, err = l.src.ask(ctx, "release", r.Name, l.sql(`SELECT FROM @broken WHERE`+mine))
	}
	switch {
	case err != nil:
		return l.fail(ctx, "release", err)
	case answers[0].changed == 0 && (!l.tried.Load() || len(broken) > 0):
		return l.End(l.lost())
	}
	_ = l.End(source.ErrReleased)
	return nil
}

// step writes the record anew, as a change with a number of its own. It asks for the one before:
// it is made once, however often it has to be sent, and one that was delayed cannot undo a later one.
const step = `UPDATE @lock SET step = $4::bigint, record = $5 WHERE` + mine + `AND step = $6::bigint`

// change makes one, and with it what else a statement does that begins with it. done finds out of
// a result whether it was made before the lock was lost.
func (l *lease) change(ctx context.Context, op string, set func(*remote.Record), text string, done func(result row) bool, more ...any) error {
	_, err := l.changes.Make(l.Holding, errGone, set, func(next remote.Record, before int64) (remote.Shown, error) {
		answers, doubt, err := l.src.repeat(ctx, l.src.timeout,
			l.sql(text, append([]any{next.Step, next.Encode(), before}, more...)...),
			l.src.sql(`SELECT l.token, l.step, r.result FROM (SELECT $1::text AS grp, $2::text AS name) t
				LEFT JOIN @lock l ON l.grp = t.grp AND l.name = t.name LEFT JOIN @result r ON r.grp = t.grp AND r.name = t.name`, l.src.group, l.Record().Name))
		if err != nil {
			return remote.Shown{Doubt: doubt}, l.fail(ctx, op, err)
		}
		now := answers[1].rows[0]
		if now.text(0) != l.Record().Token {
			return remote.Shown{Done: done(now), Doubt: doubt}, nil
		}
		return remote.Shown{Mine: true, Step: now.number(1), Left: now.number(1), Doubt: doubt}, nil
	})
	if errors.Is(err, remote.ErrAgain) {
		err = l.fail(ctx, op, err)
	}
	return err
}

func nothing(*remote.Record) {}

// unseen is for a change that leaves nothing behind when the lock is another's.
func unseen(row) bool { return false }

// MarkJob implements source.Lease.
func (l *lease) MarkJob(ctx context.Context, jobs ...process.Group) error {
	return l.change(ctx, "mark the job", func(r *remote.Record) { r.Groups = jobs }, step, unseen)
}

// Fence implements source.Lease: a sequence gives the numbers, all locks of the schema theirs. One
// whose answer was lost is nobody's.
func (l *lease) Fence(ctx context.Context) (uint64, error) {
	if err := l.Ended(); err != nil {
		return 0, err
	}
	draw := l.sql(living+`RETURNING nextval($4::regclass)`, l.src.schema+"fence")
	answers, _, err := l.src.repeat(ctx, l.src.timeout, draw)
	switch {
	case err != nil:
		return 0, l.fail(ctx, "draw a fence number", err)
	case answers[0].changed == 0:
		return 0, l.lost()
	}
	return uint64(answers[0].rows[0].number(0)), nil //nolint:gosec // a sequence begins with 1
}
