package locktest

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Now reads CLOCK_BOOTTIME: one clock for all processes of this kernel, which cannot be set and which also
// counts suspend (clock_gettime(2)).
func Now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(fmt.Sprintf("read CLOCK_BOOTTIME: %v", err)) // older than any kernel that Go runs on
	}
	return time.Duration(ts.Nano())
}
