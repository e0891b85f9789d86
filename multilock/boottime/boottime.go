// Package boottime measures elapsed time in a way that also counts the time that a machine was suspended.
//
// Go's monotonic clock is CLOCK_MONOTONIC on Linux, which stops while the machine sleeps. A holder that
// slept through its lock's whole time to live would still count the lock as valid. CLOCK_BOOTTIME continues
// during suspend.
package boottime

import "time"

// Instant is an instant on this machine's own clocks. It is meaningless on another machine or after a
// reboot. The zero Instant is not a valid one.
type Instant struct {
	mono time.Time
	boot time.Duration
}

// Now returns the current instant.
func Now() Instant {
	return Instant{mono: time.Now(), boot: sinceBoot()}
}

// At is the instant at which both clocks of a machine show t, for tests with their own clock.
func At(t time.Time) Instant {
	return Instant{mono: t, boot: time.Duration(t.UnixNano())}
}

// Clock is the clock to read, so that a test can observe and control each reading. The zero Clock is this
// machine's own.
type Clock func() Instant

// Now reads the clock.
func (c Clock) Now() Instant {
	if c == nil {
		return Now()
	}
	return c()
}

// Elapsed reads the clock, and returns the time since i, like Instant.Elapsed.
func (c Clock) Elapsed(i Instant) time.Duration { return c.Now().Since(i) }

// Elapsed returns the time since i, including suspended time. It takes the larger of two clocks, so that an
// error of either one can only make something expire too early, never too late.
func (i Instant) Elapsed() time.Duration {
	return max(time.Since(i.mono), sinceBoot()-i.boot)
}

// Since returns the time from an earlier instant to i, like Elapsed.
func (i Instant) Since(earlier Instant) time.Duration {
	return max(i.mono.Sub(earlier.mono), i.boot-earlier.boot)
}

// Awake returns the time since i for which this machine was not suspended. No step of a clock makes it
// larger than the real time: it is for a process that has to wait until another one's time is over.
func (i Instant) Awake() time.Duration { return time.Since(i.mono) }

// Add returns the instant d after i.
func (i Instant) Add(d time.Duration) Instant {
	return Instant{mono: i.mono.Add(d), boot: i.boot + d}
}

// Shared is the instant on a clock that all processes of this boot and time namespace read alike, so that
// it can be passed to another process: CLOCK_BOOTTIME on Linux, the time since the boot on Windows.
// Elsewhere it is the wall clock, whose steps move it.
func (i Instant) Shared() time.Duration { return i.boot }

// IsZero reports whether i is the zero Instant.
func (i Instant) IsZero() bool { return i.mono.IsZero() }
