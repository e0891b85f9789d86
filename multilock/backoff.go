package multilock

import (
	"math/rand/v2"
	"time"
)

// backoff gives pauses that grow exponentially up to a limit, with full jitter:
// each is drawn evenly from zero to the present bound, which spreads contenders
// better than any fixed part would. Those who have come to the limit are spread by
// then, and wait for long: their pauses are half of it at least, which spares a third
// of the attempts and hardly delays the one that counts. Where a source is to be
// spared, none is shorter than least.
type backoff struct {
	least, limit time.Duration
	bound        time.Duration
}

const firstPause = 2 * time.Millisecond

func (b *backoff) next() time.Duration {
	if b.least > 0 {
		return b.least + rand.N(b.limit-b.least+1) //nolint:gosec // jitter needs no secrecy
	}
	if b.bound == b.limit {
		return b.limit/2 + rand.N(b.limit-b.limit/2) + 1 //nolint:gosec // jitter needs no secrecy
	}
	b.bound = min(max(2*b.bound, firstPause), b.limit)
	return rand.N(b.bound) + 1 //nolint:gosec // jitter needs no secrecy
}

func (b *backoff) reset() { b.bound = 0 }
