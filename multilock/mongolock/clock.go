package mongolock

import (
	"context"
	"sync"
	"time"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/source"
)

// serverClock reads the primary's clock. The times in the documents come from it,
// and ages are computed with it alone: hosts' clocks differ.
type serverClock struct {
	mu   sync.Mutex
	read boottime.Instant
	time time.Time
}

// A reading is carried forward on this host's own clock, so that looking at a
// thousand locks does not ask a thousand times.
const (
	clockCarried = time.Minute
	clockFresh   = 2 * time.Second
)

// now is the server's time, from a reading of at most the given age.
func (c *serverClock) now(ctx context.Context, s *Source, age time.Duration) (time.Time, error) {
	if now, ok := c.carried(age); ok {
		return now, nil
	}
	start := boottime.Now()
	hello, err := s.hello(ctx)
	if err != nil {
		return time.Time{}, s.opError(ctx, "read the server's clock", "", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read, c.time = start, hello.LocalTime
	return c.time, nil
}

func (c *serverClock) carried(age time.Duration) (now time.Time, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read.IsZero() {
		return time.Time{}, false
	}
	passed := c.read.Elapsed()
	return c.time.Add(passed), passed < age
}

var _ source.Timekeeper = (*Source)(nil)

// Now implements source.Timekeeper: the time of the primary. After a failover it
// is another server's, so the servers of a set need clocks that agree.
func (s *Source) Now(ctx context.Context) (time.Time, error) {
	if _, err := s.ready(ctx); err != nil {
		return time.Time{}, err
	}
	return s.clock.now(ctx, s, clockFresh)
}
