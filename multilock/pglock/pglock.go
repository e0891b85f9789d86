package pglock

import (
	"context"
	"time"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

const pkg = "pglock"

// Options say where the locks live, and which are meant.
type Options = remote.Options[Place]

// Source is the locks of one group in one schema, and the results of the jobs that ran under
// them.
type Source struct {
	remote.Table
	*server
}

var (
	_ remote.Abilities  = (*Source)(nil)
	_ source.Timekeeper = (*Source)(nil)
)

// limits are for parts that are sent quickly. A waiter is told, or a look for all of a process finds out.
var limits = remote.Limits{Value: 1 << 20, Parts: 64, Unheard: 10 * time.Minute, Server: "PostgreSQL"}

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
	return &Source{remote.NewTable(member, server, "", limits), server}, nil
}

// Close ends the connections. Locks that were acquired through the source stay held, and can be
// neither renewed nor released any more.
func (s *Source) Close() error {
	s.crowd.close()
	s.disconnect()
	return nil
}

// Now implements source.Timekeeper.
func (s *Source) Now(ctx context.Context) (now time.Time, err error) {
	answers, _, err := s.carryOut(ctx, 0, func() []statement { return []statement{{text: `SELECT ` + micros}} })
	if err != nil {
		return now, s.OpError(ctx, "read the server's clock", "", err)
	}
	return time.UnixMicro(answers[0][0].number(0)), nil
}
