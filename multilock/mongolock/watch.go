package mongolock

import (
	"time"

	"github.com/multilock/go/multilock/boottime"
)

// sign is what a sign of life changes: each acquisition has a token of its own, and
// counts its signs.
type sign struct {
	token string
	beats int64
}

// watch is what an observer has seen of one lock over time, by its own clock.
//
// That the sign is the same in two samples proves that there was none in between.
// A server that cannot be reached keeps everybody from giving one, though, and
// those who come back are given a while: a sample that failed or was missing, which
// is what this host's own sleep looks like, begins the steady part anew.
type watch struct {
	last   sign
	seen   boottime.Instant // since when the sign is the same
	steady boottime.Instant // since when, of that, no sample was missing
	prior  boottime.Instant // the end of the sample before
}

// shortestGap is how late a sample may be on a loaded machine.
const shortestGap = 500 * time.Millisecond

// add takes a sample into account that was complete just now, for a holder that
// gives a sign of life every beat.
func (w *watch) add(s sign, beat time.Duration) {
	now := boottime.Now()
	gap := !w.prior.IsZero() && w.prior.Elapsed() > max(beat, shortestGap)
	switch {
	case w.seen.IsZero() || s != w.last:
		w.seen, w.steady = now, now
	case gap || w.steady.IsZero():
		w.steady = now
	}
	w.last, w.prior = s, now
}

// interrupt notes a sample that failed.
func (w *watch) interrupt() { w.steady = boottime.Instant{} }

func (w *watch) unchanged() time.Duration { return since(w.seen) }

func (w *watch) watched() time.Duration { return since(w.steady) }

func since(i boottime.Instant) time.Duration {
	if i.IsZero() {
		return 0
	}
	return i.Elapsed()
}
