package cloudshell

import (
	"context"
	"errors"
	"time"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/source"
)

var errNoClock = errors.New("the server did not tell the time just now")

// around is the time of the server, as early and as late as it may be now; ok is false
// if the server does not tell. One that did not answer just now is not asked again.
func (s *Source) around(ctx context.Context, age time.Duration) (early, late time.Time, ok bool) {
	early, late, err := s.clock.Read(age, func() (time.Time, error) {
		if !s.clockless.IsZero() && s.clockless.Elapsed() < source.ClockCarried {
			return time.Time{}, errNoClock
		}
		now, err := s.serverTime(ctx)
		if s.clockless = (boottime.Instant{}); err != nil {
			s.clockless = boottime.Now()
		}
		return now, err
	})
	return early, late, err == nil
}

// now is for a sign of life; zero if the server does not tell the time.
func (s *Source) now(ctx context.Context) time.Time {
	_, late, _ := s.around(ctx, source.ClockCarried)
	return late
}

// Now implements source.Timekeeper, by GetServerDateAndTime.
func (s *Source) Now(ctx context.Context) (time.Time, error) {
	now, err := s.serverTime(ctx)
	if apiFailure(err) {
		err = errors.Join(source.ErrUnsupported, err)
	}
	return now, opError("read the server's clock", "", err)
}
