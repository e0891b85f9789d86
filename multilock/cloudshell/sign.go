package cloudshell

import (
	"time"

	"github.com/multilock/go/multilock/watch"
)

// slowest is how long a listing may take in any case: a server is no disk.
const slowest = 250 * time.Millisecond

// limitsFor says how listings have to come of a holder that gives a sign of life every
// beat: its key is another one then.
func limitsFor(beat time.Duration) watch.Limits {
	return watch.Limits{Slow: max(beat/4, slowest), Gap: max(beat, 2*slowest)}
}
