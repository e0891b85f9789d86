package pglock

import (
	"context"

	"github.com/multilock/go/multilock/source"
)

var _ source.Ledger = (*Source)(nil)

func (s *Source) result(name string) statement {
	return s.sql(`SELECT result FROM @result WHERE grp = $1 AND name = $2 AND result IS NOT NULL`, s.group, name)
}

// resultIn is the result that was found, nil if there is none.
func resultIn(found []row) []byte {
	if len(found) == 0 {
		return nil
	}
	return found[0][0]
}

// Result implements source.Ledger.
func (s *Source) Result(ctx context.Context, name string) (source.Result, error) {
	return s.ReadResult(name, func() ([]byte, error) {
		found, err := s.ask(ctx, "read the result", name, s.result(name))
		return resultIn(found), err
	})
}

// Results implements source.Ledger.
func (s *Source) Results(ctx context.Context) ([]string, error) {
	return s.list(ctx, "list the results", `SELECT name FROM @result WHERE grp = $1 AND result IS NOT NULL ORDER BY name`)
}

// Revision implements source.Ledger: how often the results were changed. It needs no clock, and an
// index has it.
func (s *Source) Revision(ctx context.Context) (string, error) {
	rows, err := s.list(ctx, "look at the results", `SELECT coalesce(sum(commits), 0) FROM @result WHERE grp = $1`)
	if err != nil {
		return "", err
	}
	return rows[0], nil
}
