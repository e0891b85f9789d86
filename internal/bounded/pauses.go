package bounded

import (
	"cmp"
	"math/rand/v2"
	"time"
)

// Pauses grow exponentially up to a limit, with full jitter: each is drawn evenly from
// zero to the present bound, which spreads many that wait for the same better than any
// fixed part would. Those who have come to the limit are spread by then, and wait for
// long: their pauses are half of it at least, which spares a third of the requests and
// hardly delays the one that counts.
type Pauses struct {
	First time.Duration // the bound of the first, 20 ms if 0
	Limit time.Duration
	Least time.Duration // if not 0, all are between this and the limit: the source is to be spared
	bound time.Duration
}

// usualFirst also bounds how often one asks who resets the pauses at each answer.
const usualFirst = 20 * time.Millisecond

// Next is the next pause.
func (p *Pauses) Next() time.Duration {
	if p.Least > 0 {
		return p.Least + rand.N(p.Limit-p.Least+1) //nolint:gosec // jitter needs no secrecy
	}
	if p.bound == p.Limit {
		return p.Limit/2 + rand.N(p.Limit-p.Limit/2) + 1 //nolint:gosec // jitter needs no secrecy
	}
	p.bound = min(max(2*p.bound, cmp.Or(p.First, usualFirst)), p.Limit)
	return rand.N(p.bound) + 1 //nolint:gosec // jitter needs no secrecy
}

// Reset starts anew with short pauses.
func (p *Pauses) Reset() { p.bound = 0 }
