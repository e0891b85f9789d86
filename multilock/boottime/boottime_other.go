//go:build !linux && !windows

package boottime

import "time"

// sinceBoot falls back to the wall clock where no clock that counts suspend is available. The wall clock
// counts suspend, and Elapsed takes the larger of the two, so that a step of the wall clock can only make a
// lease expire too early.
func sinceBoot() time.Duration { return time.Duration(time.Now().UnixNano()) }

// AwakeSinceBoot reads a clock that is the same for all processes of this boot, and that steps of the wall
// clock do not affect. This system has none: ok is false.
func AwakeSinceBoot() (awake time.Duration, ok bool) { return 0, false }
