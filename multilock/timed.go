package multilock

import (
	"errors"

	"github.com/multilock/go/multilock/boottime"
)

// Timed is a Lease that is over at a moment which was fixed when it was acquired.
// Nothing that its holder does prolongs it or gives it back earlier. The Lock's
// context ends at that moment, with ErrOver.
type Timed interface {
	Lease
	// Ends is the moment at which the holder has to have stopped.
	Ends() boottime.Instant
}

// ErrOver says that the time for which a lock was given is over, as it was fixed
// when it was acquired. A *LostError with this cause is how a Timed lock ends if it
// is not released before.
var ErrOver = errors.New("its time is over")

// ends is when a lease is over by time alone, zero if it is not.
func ends(lease Lease) boottime.Instant {
	if timed, ok := lease.(Timed); ok {
		return timed.Ends()
	}
	return boottime.Instant{}
}

// Timed says whether the lock is over at a fixed moment, Remaining from now,
// whatever happens until then.
func (l *Lock) Timed() bool { return !l.ends.IsZero() }
