package cloudshell

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/source"
)

// serverClock carries a reading of the server's clock forward, so that not every
// sign of life costs a request more. What the request took leaves a doubt, which
// always counts for the holder: signs of life are dated as late, and silence is
// judged as early as may be.
type serverClock struct {
	mu         sync.Mutex
	at         time.Time
	start, end boottime.Instant // of the request
	failed     boottime.Instant // when the clock could not be read, zero if it could
}

const (
	clockCarried = time.Minute
	clockFresh   = 2 * time.Second
)

// read is the time of the server, as early and as late as it may be now; ok is
// false if the server does not tell. A reading may be as old as age.
func (c *serverClock) read(ctx context.Context, s *Source, age time.Duration) (early, late time.Time, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() || c.start.Elapsed() > age {
		c.refresh(ctx, s)
	}
	if c.at.IsZero() {
		return time.Time{}, time.Time{}, false
	}
	return c.at.Add(c.end.Elapsed()), c.at.Add(c.start.Elapsed()), true
}

// refresh asks the server, unless it did not answer just now.
func (c *serverClock) refresh(ctx context.Context, s *Source) {
	if !c.failed.IsZero() && c.failed.Elapsed() < clockCarried {
		return
	}
	start := boottime.Now()
	at, err := s.serverTime(ctx)
	if err != nil {
		c.at, c.failed = time.Time{}, boottime.Now()
		return
	}
	c.at, c.start, c.end, c.failed = at, start, boottime.Now(), boottime.Instant{}
}

// now is for a sign of life; zero if the server does not tell the time.
func (s *Source) now(ctx context.Context) time.Time {
	_, late, _ := s.clock.read(ctx, s, clockCarried)
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
