package source

import (
	"time"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock/boottime"
)

// Clock carries a reading of a source's clock forward on this host's own, so that looking
// at a thousand locks, or at one for hours, does not read it every time. It is safe for
// concurrent use; one reading is made at a time.
type Clock struct {
	Host       boottime.Clock // this host's own
	mu         bounded.Turn
	time       time.Time
	start, end boottime.Instant // of the request
}

// How old a reading may be. What looks like a silence is checked against a fresh one.
const (
	ClockCarried = time.Minute     // for looking
	ClockFresh   = 2 * time.Second // for judging
)

// Read is the clock's time, as early and as late as it may be now: what a request took
// leaves a doubt, which should always count for the holder. A reading may be as old as
// age; otherwise ask makes one.
func (c *Clock) Read(age time.Duration, ask func() (time.Time, error)) (early, late time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.Host.Now()
	if c.time.IsZero() || now.Since(c.end) >= age {
		start := now
		read, err := ask()
		if err != nil {
			return time.Time{}, time.Time{}, err
		}
		now = c.Host.Now()
		c.time, c.start, c.end = read, start, now
	}
	return c.time.Add(now.Since(c.end)), c.time.Add(now.Since(c.start)), nil
}
