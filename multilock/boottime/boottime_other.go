//go:build !linux

package boottime

import "time"

// sinceBoot falls back on the wall clock where no clock that counts suspend is
// reachable: it does count suspend, and Elapsed takes the larger of the two, so
// that a step of the wall clock can only make a lease expire too early.
func sinceBoot() time.Duration { return time.Duration(time.Now().UnixNano()) }
