package source

import (
	"time"

	"github.com/multilock/go/multilock/boottime"
)

// Watch measures for how long the holder of a lock has sent no heartbeat, as seen by one observer.
// It does not compare clocks: the observer samples the lock repeatedly, and measures by its own
// clock for how long the samples are equal. S is a value that every heartbeat changes: no two
// holders, and no two heartbeats of one holder, have the same S. The zero Watch has no sample.
//
// Equal samples prove that there was no heartbeat in between. They do not prove that the holder is
// dead: while a server is down or cut off no process can send one, and holders need a while to
// recover. So Watched only counts the time in which every sample was on time.
type Watch[S comparable] struct {
	last   S
	seen   boottime.Instant // when the last value was first seen
	steady boottime.Instant // since when all samples were on time
	shown  bool             // a heartbeat was seen since the first sample
	asked  boottime.Instant // start of the last sample: the server may have answered then
	prior  boottime.Instant // end of the last sample
}

// WatchLimits define which samples are on time. Both have to leave room for a busy scheduler: a
// process that waits for a CPU has not waited for the server.
type WatchLimits struct {
	// Slow is how long a sample may take. Zero is no limit.
	Slow time.Duration
	// Gap is the maximum time between two samples. A longer one may be a suspend of this host.
	Gap time.Duration
}

// Add adds a sample that was begun at start, and is complete now.
func (w *Watch[S]) Add(sign S, start, now boottime.Instant, limits WatchLimits) {
	slow := limits.Slow > 0 && now.Since(start) > limits.Slow
	gap := !w.prior.IsZero() && now.Since(w.prior) > limits.Gap
	switch {
	case w.seen.IsZero() || sign != w.last:
		w.shown = !w.seen.IsZero()
		w.seen, w.steady = now, now
	case slow || gap || w.steady.IsZero():
		w.steady = now
	}
	w.last, w.asked, w.prior = sign, start, now
}

// Interrupt records a sample that failed.
func (w *Watch[S]) Interrupt() { w.steady = boottime.Instant{} }

// Last returns the last sample.
func (w *Watch[S]) Last() S { return w.last }

// Shown reports whether a heartbeat was seen since the first sample.
func (w *Watch[S]) Shown() bool { return w.shown }

// Unchanged is how long the last heartbeat had been the last one when the last sample was begun.
func (w *Watch[S]) Unchanged() time.Duration { return w.since(w.seen) }

// Watched is the part of Unchanged in which each sample was on time. It ends with the last sample,
// too.
func (w *Watch[S]) Watched() time.Duration { return w.since(w.steady) }

// Stale is the age of the last sample.
func (w *Watch[S]) Stale(now boottime.Instant) time.Duration {
	if w.asked.IsZero() {
		return 0
	}
	return now.Since(w.asked)
}

func (w *Watch[S]) since(i boottime.Instant) time.Duration {
	if i.IsZero() {
		return 0
	}
	return max(w.asked.Since(i), 0)
}
