package boottime

import (
	"time"

	"golang.org/x/sys/windows"
)

// sinceBoot reads GetTickCount64, which counts sleep and hibernation, and which no step of
// the wall clock touches. Its ticks of up to 16 ms make a lease expire so much too early.
func sinceBoot() time.Duration { return windows.DurationSinceBoot() }

// AwakeSinceBoot reads a clock that is the same for all processes of this boot, and
// that stands still in sleep. It is not asked for here: ok is false.
func AwakeSinceBoot() (awake time.Duration, ok bool) { return 0, false }
