package cloudshell

import (
	"time"

	"github.com/multilock/go/multilock/boottime"
)

// watch is what an observer has seen of one holder over time. A server that is
// away makes every holder silent, and none of them dead. So only a stretch of
// time counts in which each listing came quickly and none was missing.
type watch struct {
	key    string           // of the last sign of life
	seen   boottime.Instant // since when it is the last
	steady boottime.Instant // since when, of that, the listings came as they should
	prior  boottime.Instant // when the last one came
}

// slowest is how long a listing may take in any case: a server is no disk.
const slowest = 250 * time.Millisecond

// add takes a listing into account that was asked for at start, for a holder that
// gives a sign of life every beat.
func (w *watch) add(start boottime.Instant, key string, beat time.Duration) {
	slow := start.Elapsed() > max(beat/4, slowest)
	gap := !w.prior.IsZero() && w.prior.Elapsed() > max(beat, 2*slowest)
	if w.seen.IsZero() || w.key != key {
		w.seen, w.steady = boottime.Now(), boottime.Now()
	} else if slow || gap || w.steady.IsZero() {
		w.steady = boottime.Now()
	}
	w.key, w.prior = key, boottime.Now()
}

// interrupt notes a listing that failed.
func (w *watch) interrupt() { w.steady = boottime.Instant{} }

func (w *watch) unchanged() time.Duration { return since(w.seen) }

func (w *watch) watched() time.Duration { return since(w.steady) }

func since(i boottime.Instant) time.Duration {
	if i.IsZero() {
		return 0
	}
	return i.Elapsed()
}
