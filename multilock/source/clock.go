package source

import (
	"time"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock/boottime"
)

// Clock extrapolates a reading of a source's clock with this host's clock, so that observing many
// locks, or one for hours, does not read it every time. It is safe for concurrent use; one reading
// is made at a time.
type Clock struct {
	Host       boottime.Clock // this host's clock
	mu         bounded.Turn
	time       time.Time
	start, end boottime.Instant // of the request
}

// Maximum ages of a reading. Before a holder is suspected, its missing heartbeat is checked against
// a fresh one.
const (
	ClockCarried = time.Minute     // for observing
	ClockFresh   = 2 * time.Second // for the assessment
)

// Read returns the earliest and the latest time that the clock may show now. They differ by the
// duration of the request; callers use the bound that favours the holder. A reading may be as old
// as age; otherwise ask makes a new one.
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
