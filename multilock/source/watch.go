package source

import (
	"time"

	"github.com/multilock/go/multilock/boottime"
)

// Watch tells for how long the holder of a lock has given no sign of life, as one
// observer saw it. No two clocks are compared: the observer looks at the lock again
// and again, and counts by its own clock for how long it looks the same. S is what a sign of
// life changes: two holders, or two signs of one holder, never have the same S. The
// zero Watch has seen nothing yet.
//
// That S is the same in two samples shows that there was no sign in between. It does
// not show that the holder is dead: a server that is down or cut off keeps everybody
// from giving one, and those who come back need a while. So the part of the silence
// is told apart in which every sample came as it should.
type Watch[S comparable] struct {
	last   S
	seen   boottime.Instant // since when the sign is the last
	steady boottime.Instant // since when, of that, the samples came as they should
	shown  bool             // a sign of life came while this watched
	asked  boottime.Instant // when the last sample was begun: the server may have answered then
	prior  boottime.Instant // when it was complete
}

// WatchLimits say which samples came as they should. Both leave room for a scheduler that
// is busy: who waits for a processor has not waited for the server.
type WatchLimits struct {
	// Slow is how long a sample may take. Zero is no limit.
	Slow time.Duration
	// Gap is how long after the one before a sample may come. A longer one is what
	// this host's own sleep looks like.
	Gap time.Duration
}

// Add takes a sample into account that was begun at start, and is complete now.
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

// Interrupt notes a sample that failed.
func (w *Watch[S]) Interrupt() { w.steady = boottime.Instant{} }

// Last is the last sign that was seen.
func (w *Watch[S]) Last() S { return w.last }

// Shown says whether any sign of life came since the first sample.
func (w *Watch[S]) Shown() bool { return w.shown }

// Unchanged is for how long the last sign of life has been the last, as the last
// sample that came showed it: nobody knows what happened since.
func (w *Watch[S]) Unchanged() time.Duration { return w.since(w.seen) }

// Watched is the part of Unchanged in which each sample came as it should. It ends
// with the last sample, too.
func (w *Watch[S]) Watched() time.Duration { return w.since(w.steady) }

// Stale is how old the last sample is now that came: what it showed was so then.
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
