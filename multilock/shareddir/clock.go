package shareddir

import (
	"errors"
	"fmt"
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

// around is what Around says. A user who may not make a directory is not told so three times
// in one look.
func (c *clock) around(b *Base, age time.Duration) (early, late time.Time, err error) {
	return c.Read(age, func() (time.Time, error) {
		if !c.refused.IsZero() && c.Host.Elapsed(c.refused) < source.ClockFresh {
			return time.Time{}, c.why
		}
		read, err := b.ReadClock()
		if err != nil && !vfs.InDoubt(err) && !vfs.Gone(err) { // what is gone is made again
			c.refused, c.why = c.Host.Now(), err
		}
		return read, err
	})
}

// ReadClock reads the server's clock: it makes an empty directory, reads its time, and
// removes it. On NFS it touches the staging directory instead, which is one request.
func (b *Base) ReadClock() (now time.Time, err error) {
	for range Rounds() {
		if now, err = b.readClock(); !errors.Is(err, errStagingGone) {
			break
		}
	}
	if err != nil {
		return time.Time{}, opError("read the server's clock", err)
	}
	return now, nil
}

var errStagingGone = errors.New("the staging directory was removed meanwhile")

func (b *Base) readClock() (now time.Time, err error) {
	staging, err := b.Staging.Use()
	if err != nil {
		return time.Time{}, err
	}
	defer b.Staging.Done(staging)
	if b.Kind.NFS {
		now, err = b.touched(StagingDir)
	} else {
		now, err = justMade(staging)
	}
	if vfs.Gone(err) {
		b.Staging.Drop(staging)
		err = errors.Join(errStagingGone, err)
	}
	return now, err
}

func justMade(staging vfs.Dir) (time.Time, error) {
	name := source.NewToken() + ClockSuffix
	if err := staging.Mkdir(name, DirMode); err != nil {
		return time.Time{}, err
	}
	info, err := staging.StatName(name)
	_ = staging.Rmdir(name) // a leftover is empty, and the janitor's
	return info.ModTime, err
}

// touched is the time that the server gives a directory of .multilock: an NFS client is told
// with the reply. If the time that it knows has not moved, it was told nothing, and is asked
// to ask.
func (b *Base) touched(name string) (time.Time, error) {
	private, err := b.Private.Use()
	if err != nil {
		return time.Time{}, err
	}
	defer b.Private.Done(private)
	dir, err := private.Enter(name)
	if err != nil {
		return time.Time{}, err
	}
	defer dir.Close() //nolint:errcheck // a directory
	before, err := dir.StatCached()
	if err != nil {
		return time.Time{}, err
	}
	if err := private.TouchFile(name); err != nil {
		return time.Time{}, err
	}
	after, err := dir.StatCached()
	if err == nil && !after.ModTime.After(before.ModTime) {
		after, err = dir.Stat()
	}
	return after.ModTime, err
}

// Now is the server's time: that of a directory made just now, or a reading of at most
// the given age. The error says why this user can make no directory there.
//
// It may be later by what the reading took: a server that was slow to answer makes nobody
// look more silent than it is.
func (b *Base) Now(age time.Duration) (time.Time, error) {
	early, _, err := b.Around(age)
	return early, err
}

// Around is the server's time, too: as early and as late as it may be.
func (b *Base) Around(age time.Duration) (early, late time.Time, err error) {
	return b.clock.around(b, age)
}

// Some file systems keep times in whole seconds (ext4 with inodes of 128 bytes, HFS+,
// many a server), or in every second one (FAT). Then a directory's time may lie that
// much before the heartbeat that set it, two heartbeats may leave the same, and
// the server's clock may read as much too early. Who judges a silence by such times
// waits for that much more; who sends heartbeats has to give them no faster than the
// times can show.

// Coarsest is the longest step of a file system's times.
const Coarsest = 2 * time.Second

// WholeSeconds says that a time may have such a step.
func WholeSeconds(t time.Time) bool { return t.Nanosecond() == 0 }

const (
	// grainPatience is how long a time is waited for to move.
	grainPatience = 4 * Coarsest
	// grainPause lies between two touches.
	grainPause = 10 * time.Millisecond
)

// learnGrain finds the step of a directory's times, zero if that is a fraction of a
// second: then the first look shows it. Otherwise the directory is touched until its
// time moves. Steps of two seconds show no odd one.
func learnGrain(dir vfs.Dir) (time.Duration, error) {
	last, err := dir.Stat()
	if err != nil || !WholeSeconds(last.ModTime) {
		return 0, err
	}
	even := 0 // steps from one even second to another: on a busy machine an odd one may have been missed
	//nolint:forbidigo // of who opens the directory, before there is a lock
	for start := boottime.Now(); start.Elapsed() < grainPatience; time.Sleep(grainPause) {
		if err := dir.Touch(); err != nil {
			return 0, err
		}
		now, err := dir.Stat()
		switch {
		case err != nil:
			return 0, err
		case !WholeSeconds(now.ModTime):
			return 0, nil
		case now.ModTime.Equal(last.ModTime):
			continue
		case odd(now.ModTime), odd(last.ModTime):
			return time.Second, nil
		case even > 0:
			return Coarsest, nil
		}
		last, even = now, even+1
	}
	return 0, errStill
}

func odd(t time.Time) bool { return t.Unix()%2 != 0 }

// Suits says whether a holder with this claim can show its heartbeats here. A
// heartbeat is a tenth of the TTL, and has to move the time.
func (t Traits) Suits(claim source.Claim, base string) error {
	step := claim.Heartbeat
	if step == 0 {
		step = claim.TTL // nobody renews it: its time has to end at a time that can be told
	}
	if step >= t.Grain {
		return nil
	}
	least := time.Duration(float64(claim.TTL) * float64(t.Grain) / float64(step)).Round(time.Second)
	return &source.InvalidError{
		What: "ttl", Got: claim.TTL.String(),
		Why: fmt.Sprintf("too short for the filesystem of %s, whose timestamps have a resolution of %s: heartbeats every %s look the same there; use a ttl of %s or more", base, t.Grain, step, least),
	}
}
