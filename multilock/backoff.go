package multilock

import (
	"math/rand/v2"
	"time"
)

// backoff gives pauses that grow exponentially up to a limit, with full jitter:
// each is drawn evenly from zero to the present bound, which spreads contenders
// better than any fixed part would.
type backoff struct {
	limit time.Duration
	bound time.Duration
}

const firstPause = 2 * time.Millisecond

func (b *backoff) next() time.Duration {
	b.bound = min(max(2*b.bound, firstPause), b.limit)
	return rand.N(b.bound) + 1 //nolint:gosec // jitter needs no secrecy
}

func (b *backoff) reset() { b.bound = 0 }
