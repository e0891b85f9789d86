package fslock

import (
	"fmt"
	"time"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/vfs"
)

// Some file systems keep times in whole seconds (ext4 with inodes of 128 bytes, HFS+,
// many a server), or in every second one (FAT). Then a directory's time may lie that
// much before the sign of life that set it, two signs of life may leave the same, and
// the server's clock may read as much too early. Who judges a silence by such times
// waits for that much more; who gives signs of life has to give them no faster than the
// times can show.

// coarsest is the longest step of a file system's times.
const coarsest = 2 * time.Second

// grain is the longest step that the times of a sign may have. A time that happens to
// have no fraction costs nothing but a moment's patience.
func (s sign) grain() time.Duration {
	if wholeSeconds(s.modified) {
		return coarsest
	}
	return 0
}

func wholeSeconds(t time.Time) bool { return t.Nanosecond() == 0 }

const (
	// grainPatience is how long the first step of a time is waited for.
	grainPatience = 3 * coarsest
	// grainPause lies between two touches.
	grainPause = 10 * time.Millisecond
)

// learnGrain finds the step of a directory's times, zero if that is a fraction of a
// second: then the first look shows it. Otherwise the directory is touched until its
// time moves.
func learnGrain(dir vfs.Dir) (time.Duration, error) {
	first, err := dir.Stat()
	if err != nil || !wholeSeconds(first.ModTime) {
		return 0, err
	}
	for start := boottime.Now(); start.Elapsed() < grainPatience; time.Sleep(grainPause) {
		if err := dir.Touch(); err != nil {
			return 0, err
		}
		now, err := dir.Stat()
		switch step := now.ModTime.Sub(first.ModTime); {
		case err != nil:
			return 0, err
		case !wholeSeconds(now.ModTime):
			return 0, nil
		case step > time.Second:
			return coarsest, nil
		case step > 0:
			return time.Second, nil
		}
	}
	return 0, errStill
}

// suits says whether a holder with this claim can show its signs of life here. A
// heartbeat is a tenth of the TTL, and has to move the time.
func (t traits) suits(claim multilock.Claim, base string) error {
	step := claim.Heartbeat
	if step == 0 {
		step = claim.TTL // nobody renews it: its time has to end at a time that can be told
	}
	if step >= t.grain {
		return nil
	}
	least := time.Duration(float64(claim.TTL) * float64(t.grain) / float64(step)).Round(time.Second)
	return &multilock.InvalidError{
		What: "ttl", Got: claim.TTL.String(),
		Why: fmt.Sprintf("too short for the filesystem of %s, which keeps times in steps of %s: signs of life every %s could not be told apart there; use a ttl of %s or more", base, t.grain, step, least),
	}
}
