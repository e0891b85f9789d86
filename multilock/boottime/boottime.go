// Package boottime measures elapsed time in a way that also counts the time a
// machine was suspended.
//
// Go's monotonic clock is CLOCK_MONOTONIC on Linux, which stands still while
// the machine sleeps. A lock's holder that slept through its whole time to live
// would then believe that it still holds the lock. CLOCK_BOOTTIME goes on.
package boottime

import "time"

// Instant is a moment on this machine's own clocks. It means nothing on another
// machine or after a reboot. The zero Instant is no moment at all.
type Instant struct {
	mono time.Time
	boot time.Duration
}

// Now returns the present moment.
func Now() Instant {
	return Instant{mono: time.Now(), boot: sinceBoot()}
}

// At is the moment at which both clocks of a machine show t, for tests that have a clock of their own.
func At(t time.Time) Instant {
	return Instant{mono: t, boot: time.Duration(t.UnixNano())}
}

// Clock is what moments are read from, where a test wants to know of each look. The zero Clock is
// this machine's own.
type Clock func() Instant

// Now looks at the clock.
func (c Clock) Now() Instant {
	if c == nil {
		return Now()
	}
	return c()
}

// Elapsed looks at the clock, and returns the time since i, as Instant.Elapsed does.
func (c Clock) Elapsed(i Instant) time.Duration { return c.Now().Since(i) }

// Elapsed returns the time since i, suspended time included. It takes the
// larger of two clocks, so that an error of either one can only make something
// expire too early, never too late.
func (i Instant) Elapsed() time.Duration {
	return max(time.Since(i.mono), sinceBoot()-i.boot)
}

// Since returns the time from an earlier moment to i, like Elapsed.
func (i Instant) Since(earlier Instant) time.Duration {
	return max(i.mono.Sub(earlier.mono), i.boot-earlier.boot)
}

// Awake returns the time since i for which this machine was not suspended. No step
// of a clock makes it more than has really passed: it is for those who have to
// wait for somebody else's time to be over.
func (i Instant) Awake() time.Duration { return time.Since(i.mono) }

// Add returns the moment d after i.
func (i Instant) Add(d time.Duration) Instant {
	return Instant{mono: i.mono.Add(d), boot: i.boot + d}
}

// Shared is the moment on a clock that all processes of this boot and time namespace
// read alike, for telling it to another one: CLOCK_BOOTTIME on Linux, the time since the
// boot on Windows. Elsewhere it is the wall clock, whose steps move it.
func (i Instant) Shared() time.Duration { return i.boot }

// IsZero reports whether i is the zero Instant.
func (i Instant) IsZero() bool { return i.mono.IsZero() }
