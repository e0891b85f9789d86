package shareddir

import (
	"time"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// clock is the file system's own. Ages are computed with it alone: hosts' clocks differ.
type clock struct {
	source.Clock
	refused boottime.Instant // when this user was told that no directory can be made there
	why     error
}

// now is what Now says: carried from when the reading was there, so that a server that
// was slow to answer makes nobody look more silent than he is. Who may not make a
// directory is not told so three times in one look.
func (c *clock) now(b *Base, age time.Duration) (time.Time, error) {
	now, _, err := c.Read(age, func() (time.Time, error) {
		if !c.refused.IsZero() && c.refused.Elapsed() < source.ClockFresh {
			return time.Time{}, c.why
		}
		read, err := b.ReadClock()
		if err != nil && !vfs.InDoubt(err) && !vfs.Gone(err) { // what is gone is made again
			c.refused, c.why = boottime.Now(), err
		}
		return read, err
	})
	return now, err
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
