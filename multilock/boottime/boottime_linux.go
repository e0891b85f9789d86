package boottime

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot reads CLOCK_BOOTTIME, which counts suspend (clock_gettime(2)).
func sinceBoot() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0 // a kernel older than 2.6.39: time.Since alone decides
	}
	return time.Duration(ts.Nano())
}

// AwakeSinceBoot reads CLOCK_MONOTONIC, which is the same for all processes of this boot and time
// namespace, and which Instant.Awake also uses. ok is false if the clock cannot be read.
func AwakeSinceBoot() (awake time.Duration, ok bool) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0, false
	}
	return time.Duration(ts.Nano()), true
}
