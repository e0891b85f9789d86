package shareddir

import (
	"sync"
	"time"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// clock reads the file system's own clock. Ages are computed with it
// alone: hosts' clocks differ.
type clock struct {
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
	Carried = time.Minute     // for looking
	Fresh   = 2 * time.Second // for judging
)

// now is what Now says. Who may not make one is not told so three times in one look.
func (c *clock) now(b *Base, age time.Duration) (time.Time, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.read.IsZero() {
		if passed := c.read.Elapsed(); passed < age {
			return c.time.Add(passed), nil
		}
	}
	if !c.refused.IsZero() && c.refused.Elapsed() < Fresh {
		return time.Time{}, c.why
	}
	read, err := b.ReadClock()
	if err != nil && !vfs.InDoubt(err) && !vfs.Gone(err) { // what is gone is made again
		c.refused, c.why = boottime.Now(), err
	}
	if err != nil {
		return time.Time{}, err
	}
	c.read, c.time = boottime.Now(), read
	return read, nil
}

// ReadClock reads the server's clock: it makes an empty directory, reads its time, and
// removes it.
func (b *Base) ReadClock() (time.Time, error) {
	token := source.NewToken()
	staging, err := b.Staging.Use()
	if err != nil {
		return time.Time{}, opError("read the server's clock", err)
	}
	defer b.Staging.Done(staging)
	name := token + ".clock"
	if err := staging.Mkdir(name, DirMode); err != nil {
		if vfs.Gone(err) {
			b.Staging.Drop(staging)
		}
		return time.Time{}, opError("read the server's clock", err)
	}
	info, err := staging.StatName(name)
	_ = staging.Rmdir(name) // a leftover is empty, and the janitor's
	if err != nil {
		return time.Time{}, opError("read the server's clock", err)
	}
	return info.ModTime, nil
}

// Now is the server's time: that of a directory made just now, or a reading of at most
// the given age. The error says why this user can make no directory there.
func (b *Base) Now(age time.Duration) (time.Time, error) { return b.clock.now(b, age) }
