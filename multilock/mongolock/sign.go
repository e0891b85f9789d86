package mongolock

import (
	"time"

	"github.com/multilock/go/multilock/source"
)

// sign is what a sign of life changes: each acquisition has a token of its own, and
// counts its signs.
type sign struct {
	token string
	beats int64
}

func (d document) sign() sign { return sign{token: d.locked.String(), beats: d.held.Beats} }

// shortestGap is how late a sample may be on a loaded machine.
const shortestGap = 500 * time.Millisecond

// limitsFor says how samples have to come of a holder that gives a sign of life every
// beat. They may take as long as they like: an answer counts up to when it was asked for. But
// between two of them a waiter makes an attempt, and asks for the server's clock; each
// takes as long as it is far to the server.
func limitsFor(beat, distance time.Duration) source.WatchLimits {
	return source.WatchLimits{Gap: max(beat, shortestGap) + 3*distance}
}
