package fslock

import (
	"strconv"
	"time"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/vfs"
)

// watch is what an observer has seen of one lock directory over time.
//
// A server that is down makes every holder silent, and none of them dead. So
// only a stretch of time counts in which each sample came back quickly and none
// was missing: a slow sample, a failed one, or a gap, which is what this host's
// own sleep looks like, starts the stretch anew.
type watch struct {
	last   vfs.Info
	seen   boottime.Instant // since when the times are as they are in last
	steady boottime.Instant // since when, of that, the samples came as they should
	prior  boottime.Instant // the end of the sample before
}

// fastest is the least time that a sample may take: on a loaded machine the
// scheduler alone takes that long.
const fastest = 25 * time.Millisecond

// add takes a sample that began at start into account, for a holder that gives
// a sign of life every beat.
func (w *watch) add(start boottime.Instant, info vfs.Info, beat time.Duration) {
	slow := start.Elapsed() > max(beat/4, fastest)
	gap := !w.prior.IsZero() && w.prior.Elapsed() > max(beat, 2*fastest)
	if w.seen.IsZero() || w.changed(info) {
		w.seen, w.steady = boottime.Now(), boottime.Now()
	} else if slow || gap || w.steady.IsZero() {
		w.steady = boottime.Now()
	}
	w.last, w.prior = info, boottime.Now()
}

// changed says whether info shows a sign of life since the last sample.
func (w *watch) changed(info vfs.Info) bool {
	return !info.ModTime.Equal(w.last.ModTime) || !info.ChangeTime.Equal(w.last.ChangeTime)
}

// interrupt notes a sample that failed.
func (w *watch) interrupt() { w.steady = boottime.Instant{} }

// sign is the last sign of life, by the server's clock.
func (w *watch) sign() time.Time { return w.last.ModTime }

func (w *watch) unchanged() time.Duration { return since(w.seen) }

func (w *watch) watched() time.Duration { return since(w.steady) }

func since(i boottime.Instant) time.Duration {
	if i.IsZero() {
		return 0
	}
	return i.Elapsed()
}

func uid(info vfs.Info) string { return strconv.FormatUint(uint64(info.UID), 10) }
