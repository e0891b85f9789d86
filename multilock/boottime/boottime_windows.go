package boottime

import (
	"time"

	"golang.org/x/sys/windows"
)

// sinceBoot reads GetTickCount64, which counts sleep and hibernation, and which steps of the wall clock do
// not affect. Its ticks of up to 16 ms make a lease expire too early by that much.
func sinceBoot() time.Duration { return windows.DurationSinceBoot() }

// AwakeSinceBoot reads a clock that is the same for all processes of this boot, and that stops during
// sleep. It is not implemented here: ok is false.
func AwakeSinceBoot() (awake time.Duration, ok bool) { return 0, false }
