package s3lock

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

const pkg = "s3lock"

// Options select the location and the group of locks.
type Options = remote.Options[Place]

// Source has the locks of one group below one prefix of a bucket, and the results of the jobs that
// ran under them.
type Source struct {
	remote.Table
	*server
}

var (
	_ remote.Abilities  = (*Source)(nil)
	_ source.Paced      = (*Source)(nil)
	_ source.Timekeeper = (*Source)(nil)
)

// limits: an object may be larger, but is read and sent as a whole.
var limits = remote.Limits{Value: 8 << 20, Parts: 8, Unordered: true, Server: "the bucket"}

// Open prepares to use the locks of a group. It does not connect to the store: the first call that
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

// Close closes idle connections. Locks that were acquired through the source stay held.
func (s *Source) Close() error {
	(&http.Client{Transport: s.transport}).CloseIdleConnections()
	return nil
}

// Pace implements source.Paced: a waiter polls, and pays for each request.
func (s *Source) Pace() (least, most time.Duration) { return 250 * time.Millisecond, 5 * time.Second }

// Now implements source.Timekeeper with the date of an answer, which is exact to a second.
func (s *Source) Now(ctx context.Context) (now time.Time, err error) {
	if err = s.ready(ctx); err == nil {
		_, err = s.repeat(ctx, 0, func(ctx context.Context) error {
			_, info, err := s.text(ctx, passName)
			now = info.now
			return err
		})
	}
	if err == nil && now.IsZero() {
		err = errors.New("its answers have no date")
	}
	return now, s.OpError(ctx, "read the store's clock", "", err)
}
