package cloudshell

import (
	"time"

	"github.com/multilock/go/multilock/source"
)

// slowest is how long a listing may take in any case: a server is no disk.
const slowest = 250 * time.Millisecond

// limitsFor says how listings have to come of a holder that gives a sign of life every
// beat, which changes its key, from a server where they take as long as distance: what
// takes twice as long is slow. With the limits of a near server nobody who died would
// ever be found dead on one that is far.
func limitsFor(beat, distance time.Duration) source.WatchLimits {
	return source.WatchLimits{Slow: max(beat/4, slowest, 2*distance), Gap: max(beat, 2*slowest) + 2*distance}
}
