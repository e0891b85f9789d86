package mongolock

import (
	"context"
	"time"

	"github.com/multilock/go/multilock/source"
)

var _ source.Timekeeper = (*Source)(nil)

// Now implements source.Timekeeper: the time of the primary. After a failover it
// is another server's, so the servers of a set need clocks that agree.
func (s *Source) Now(ctx context.Context) (time.Time, error) {
	if _, err := s.ready(ctx); err != nil {
		return time.Time{}, err
	}
	return s.now(ctx, source.ClockFresh)
}

// now reads the primary's clock. The times in the documents come from it, and ages are
// computed with it alone: hosts' clocks differ.
func (s *Source) now(ctx context.Context, age time.Duration) (time.Time, error) {
	now, _, err := s.clock.Read(age, func() (time.Time, error) {
		hello, err := s.hello(ctx)
		return hello.LocalTime, err
	})
	return now, s.opError(ctx, "read the server's clock", "", err)
}
