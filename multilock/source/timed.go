package source

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
