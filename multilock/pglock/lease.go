package pglock

import (
	"context"
	"errors"
	"time"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// lease is a lock that is held. Every write asks for its token.
type lease struct {
	*remote.Lease
	lock
	token string
}

var _ source.Committer = (*lease)(nil)

var errGone = errors.New("its row is not there any more: the lock was broken or removed, or the server has lost it")

// Gone implements remote.Hold.
func (l *lease) Gone() error { return errGone }

// sql is a statement whose first parameters are the group, the name and the token.
func (l *lease) sql(text string, more ...any) statement {
	return l.src.sql(text, append([]any{l.src.group, l.name, l.token}, more...)...)
}

const mine = ` grp = $1 AND name = $2 AND token = $3 `

// living is a sign of life.
const living = `UPDATE @lock SET seen = clock_timestamp(), beats = beats + 1, server = pg_postmaster_start_time() WHERE` + mine

// Beat implements remote.Hold.
func (l *lease) Beat(ctx context.Context, limit time.Duration) (mine bool, err error) {
	answers, _, err := l.src.request(ctx, "renew", l.name, limit, l.sql(living))
	return err == nil && answers[0].changed > 0, err
}

// Free implements remote.Hold.
func (l *lease) Free(ctx context.Context) (freed remote.Freed, err error) {
	const op = "release"
	answers, doubt, err := l.src.request(ctx, op, l.name, l.src.timeout, l.sql(`DELETE FROM @lock WHERE`+mine), l.src.tellNext(l.name))
	freed.Doubt, freed.Done = doubt, err == nil && answers[0].changed > 0
	if err == nil && !freed.Done {
		var broken []row
		broken, err = l.src.ask(ctx, op, l.name, l.sql(`SELECT FROM @broken WHERE`+mine))
		freed.Marked = len(broken) > 0
	}
	return freed, err
}

// The last result of a name is a row, which is written by the statement that finds the writer's
// lock: nobody can take the lock and not see it. One that was forgotten stays as a row without
// any, for what counts the changes.
const (
	step = `UPDATE @lock SET step = $4::bigint, record = $5 WHERE` + mine + `AND step = $6::bigint`

	commit = `WITH mine AS (` + step + ` RETURNING 1)
		INSERT INTO @result AS r (grp, name, result, commits) SELECT $1, $2, $7::text, 1 FROM mine
		ON CONFLICT (grp, name) DO UPDATE SET result = excluded.result, commits = r.commits + 1`
	forget = `WITH mine AS (` + step + ` RETURNING 1)
		UPDATE @result SET result = NULL, commits = commits + 1 WHERE grp = $1 AND name = $2 AND EXISTS (SELECT FROM mine)`
)

// Write implements remote.Hold.
func (l *lease) Write(ctx context.Context, op string, c remote.Change) (remote.Shown, error) {
	text, values := step, []any{c.Record.Step, c.Record.Encode(), c.Before}
	switch {
	case c.Forget:
		text = forget
	case c.Result != nil:
		text, values = commit, append(values, string(c.Result))
	}
	answers, doubt, err := l.src.request(ctx, op, l.name, l.src.timeout, l.sql(text, values...),
		l.src.sql(`SELECT l.token, l.step, r.result FROM (SELECT $1::text AS grp, $2::text AS name) t
			LEFT JOIN @lock l ON l.grp = t.grp AND l.name = t.name LEFT JOIN @result r ON r.grp = t.grp AND r.name = t.name`, l.src.group, l.name))
	if err != nil {
		return remote.Shown{Doubt: doubt}, err
	}
	now := answers[1].rows[0]
	return remote.Shown{
		Mine: now.text(0) == l.token, Step: now.number(1), Left: now.number(1), Done: c.Result != nil && now.text(2) == string(c.Result), Doubt: doubt,
	}, nil
}

// ReadResult implements remote.Hold. With the result there comes a sign of life, which no server
// confirms that is not the primary any more and waits for its standbys.
func (l *lease) ReadResult(ctx context.Context) (result []byte, mine bool, err error) {
	answers, err := l.src.do(ctx, "ask for the result", l.name, l.sql(living), l.src.result(l.name))
	if err != nil {
		return nil, false, err
	}
	return resultIn(answers[1].rows), answers[0].changed > 0, nil
}

// Fence implements source.Lease: a sequence gives the numbers, all locks of the schema theirs. One
// whose answer was lost is nobody's.
func (l *lease) Fence(ctx context.Context) (number uint64, err error) {
	err = l.While(func() (mine bool, err error) {
		drawn, err := l.src.ask(ctx, "draw a fence number", l.name, l.sql(living+`RETURNING nextval($4::regclass)`, l.src.schema+"fence"))
		if mine = len(drawn) > 0; mine {
			number = uint64(drawn[0].number(0)) //nolint:gosec // a sequence begins with 1
		}
		return mine, err
	})
	return number, err
}
