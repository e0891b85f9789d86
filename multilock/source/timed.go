package source

import (
	"errors"

	"github.com/multilock/go/multilock/boottime"
)

// Timed is a Lease that ends at a moment which was fixed when it was acquired. Its holder cannot
// prolong it or release it earlier. The Lock's context ends at that moment, with ErrOver.
type Timed interface {
	Lease
	// Ends is the moment at which the holder must have stopped.
	Ends() boottime.Instant
}

// ErrOver means that a lock's fixed time is over. A Timed lock that is not released before ends
// with a *LostError with this cause.
var ErrOver = errors.New("its time is over")
