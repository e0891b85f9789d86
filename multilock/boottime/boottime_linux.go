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
