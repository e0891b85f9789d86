package pglock

import (
	"context"
	"time"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

const pkg = "pglock"

// Options select the location and the group of locks.
type Options = remote.Options[Place]

// Source has the locks of one group in one schema, and the results of the jobs that ran under them.
type Source struct {
	remote.Table
	*server
}

var (
	_ remote.Abilities  = (*Source)(nil)
	_ source.Timekeeper = (*Source)(nil)
)

// limits are small enough for quick requests. A waiter is notified, or the process's periodic check
// wakes it.
var limits = remote.Limits{Value: 1 << 20, Parts: 64, Unheard: 10 * time.Minute, Server: "PostgreSQL"}

// Open prepares to use the locks of a group. It does not connect to the server: the first call that
// needs it does. The error is source.ErrInvalid for a location or a group that cannot be used.
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

// Close closes the connections. Locks that were acquired through the source stay held, and can no
// longer be renewed or released.
func (s *Source) Close() error {
	s.waiters.close()
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
