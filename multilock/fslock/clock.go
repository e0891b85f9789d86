package fslock

import (
	"context"
	"sync"
	"time"

	"github.com/multilock/go/multilock/boottime"
)

// serverClock reads the file system's own clock. Ages are computed with it
// alone: hosts' clocks differ.
type serverClock struct {
	mu   sync.Mutex
	read boottime.Instant // when the reading was there; what it says was so a moment before
	time time.Time

	refused boottime.Instant // when this user was told that no directory can be made there
	why     error
}

// A reading is carried forward on this host's own clock, so that looking at a
// thousand locks, or at one for hours, does not read it every time. It is carried from
// when it was there: a server that was slow to answer makes nobody look more silent than
// he is. What looks like a silence is checked against a fresh one.
const (
	clockCarried = time.Minute
	clockFresh   = 2 * time.Second
)

// now is the server's time: that of a directory made just now, or a reading of at
// most the given age. Who may not make one is not told so three times in one look.
func (c *serverClock) now(s *Source, age time.Duration) (time.Time, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.read.IsZero() {
		if passed := c.read.Elapsed(); passed < age {
			return c.time.Add(passed), nil
		}
	}
	if !c.refused.IsZero() && c.refused.Elapsed() < clockFresh {
		return time.Time{}, c.why
	}
	read, err := s.readServerClock()
	if err != nil && !inDoubt(err) && !gone(err) { // what is gone is made again
		c.refused, c.why = boottime.Now(), err
	}
	if err != nil {
		return time.Time{}, err
	}
	c.read, c.time = boottime.Now(), read
	return read, nil
}

// readServerClock makes an empty directory, reads its time, and removes it.
func (s *Source) readServerClock() (time.Time, error) {
	token, err := newToken()
	if err != nil {
		return time.Time{}, err
	}
	staging, err := s.staging.use()
	if err != nil {
		return time.Time{}, opError("read the server's clock", "", err)
	}
	defer s.staging.done(staging)
	name := token + clockSuffix
	if err := staging.Mkdir(name, dirMode); err != nil {
		if gone(err) {
			s.staging.drop(staging)
		}
		return time.Time{}, opError("read the server's clock", "", err)
	}
	info, err := staging.StatName(name)
	_ = staging.Rmdir(name) // a leftover is empty, and the janitor's
	if err != nil {
		return time.Time{}, opError("read the server's clock", "", err)
	}
	return info.ModTime, nil
}

// Now implements source.Timekeeper: the time of the file system's server.
func (s *Source) Now(context.Context) (time.Time, error) { return s.clock.now(s, clockFresh) }
