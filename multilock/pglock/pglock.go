package pglock

import (
	"context"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

const pkg = "pglock"

// Options say where the locks live, and which are meant.
type Options = remote.Options[Place]

// Source is the locks of one group in one schema, and the results of the jobs that ran under
// them.
type Source struct {
	remote.Member
	*server
	crowd *crowd
	group string // as it stands in the tables
	quiet bool   // no history tells of its locks
}

var (
	_ source.NameChecker = (*Source)(nil)
	_ source.Timekeeper  = (*Source)(nil)
)

// Open prepares to use the locks of a group. It does not talk to the server: the first call that
// needs it does. The error is source.ErrInvalid for a place or a group that cannot be used.
func Open(opt Options) (*Source, error) {
	member, err := opt.Join(pkg)
	if err != nil {
		return nil, err
	}
	server, err := newServer(opt.Place)
	if err != nil {
		return nil, err
	}
	return &Source{Member: member, server: server, crowd: newCrowd(server), group: opt.Group}, nil
}

// Close ends the connections. Locks that were acquired through the source stay held, and can be
// neither renewed nor released any more.
func (s *Source) Close() error {
	s.crowd.close()
	s.disconnect()
	return nil
}

// Names implements source.Source.
func (s *Source) Names(ctx context.Context) ([]string, error) {
	return s.list(ctx, "list the locks", `SELECT name FROM @lock WHERE grp = $1 ORDER BY name`)
}

// list gives the texts that a query finds, of which the group is the first parameter.
func (s *Source) list(ctx context.Context, op, query string, more ...any) (texts []string, err error) {
	rows, err := s.ask(ctx, op, "", s.sql(query, append([]any{s.group}, more...)...))
	for _, row := range rows {
		texts = append(texts, row.text(0))
	}
	return texts, err
}
