package multilock

import (
	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/source"
)

// ends is when a lease is over by time alone, zero if it is not.
func ends(lease source.Lease) boottime.Instant {
	if timed, ok := lease.(source.Timed); ok {
		return timed.Ends()
	}
	return boottime.Instant{}
}

// Timed says whether the lock is over at a fixed moment, Remaining from now,
// whatever happens until then.
func (l *Lock) Timed() bool { return !l.ends.IsZero() }
