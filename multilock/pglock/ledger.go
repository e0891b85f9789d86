package pglock

import (
	"context"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// The last result of a name is a row, which is written by the statement that finds the writer's
// lock: nobody can take the lock and not see it. One that was forgotten stays as a row without
// any, for what counts the changes.

var (
	_ source.Committer = (*lease)(nil)
	_ source.Changes   = (*Source)(nil)
)

const (
	commit = `WITH mine AS (` + step + ` RETURNING 1)
		INSERT INTO @result AS r (grp, name, result, commits) SELECT $1, $2, $7::text, 1 FROM mine
		ON CONFLICT (grp, name) DO UPDATE SET result = excluded.result, commits = r.commits + 1`
	forget = `WITH mine AS (` + step + ` RETURNING 1)
		UPDATE @result SET result = NULL, commits = commits + 1 WHERE grp = $1 AND name = $2 AND EXISTS (SELECT FROM mine)`
)

// Commit implements source.Committer.
func (l *lease) Commit(ctx context.Context, r source.Result) error {
	const op = "commit the result"
	content, err := remote.EncodeResult(r)
	if err != nil {
		return l.fail(ctx, op, err)
	}
	made := func(now row) bool { return now.text(2) == string(content) }
	return l.change(ctx, op, nothing, commit, made, string(content))
}

// Forget implements source.Committer.
func (l *lease) Forget(ctx context.Context) error {
	return l.change(ctx, "forget the result", nothing, forget, unseen)
}

// Outcome implements source.Committer. With the result there comes a sign of life, which no server
// confirms that is not the primary any more and waits for its standbys.
func (l *lease) Outcome(ctx context.Context) (source.Result, error) {
	if err := l.Ended(); err != nil {
		return source.Result{}, err
	}
	name := l.Record().Name
	answers, _, err := l.src.repeat(ctx, l.src.timeout, l.sql(living), l.src.result(name))
	switch {
	case err != nil:
		return source.Result{}, l.fail(ctx, "ask for the result", err)
	case answers[0].changed == 0:
		return source.Result{}, l.lost()
	}
	return readResult(name, answers[1].rows)
}

func (s *Source) result(name string) statement {
	return s.sql(`SELECT result FROM @result WHERE grp = $1 AND name = $2 AND result IS NOT NULL`, s.group, name)
}

func readResult(name string, found []row) (source.Result, error) {
	if len(found) == 0 {
		return source.Result{}, source.ErrNoResult
	}
	return remote.DecodeResult(name, found[0][0]), nil
}

// Result implements source.Ledger.
func (s *Source) Result(ctx context.Context, name string) (source.Result, error) {
	if err := s.CheckName(name); err != nil {
		return source.Result{}, err
	}
	found, err := s.ask(ctx, "read the result", name, s.result(name))
	if err != nil {
		return source.Result{}, err
	}
	return readResult(name, found)
}

// Results implements source.Ledger.
func (s *Source) Results(ctx context.Context) ([]string, error) {
	return s.list(ctx, "list the results", `SELECT name FROM @result WHERE grp = $1 AND result IS NOT NULL ORDER BY name`)
}

// Revision implements source.Changes: how often the results were changed. It needs no clock, and an
// index has it.
func (s *Source) Revision(ctx context.Context) (string, error) {
	rows, err := s.list(ctx, "look at the results", `SELECT coalesce(sum(commits), 0) FROM @result WHERE grp = $1`)
	if err != nil {
		return "", err
	}
	return rows[0], nil
}
