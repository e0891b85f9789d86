package bounded

import (
	"math/rand/v2"
	"time"
)

// Pauses grow exponentially up to a limit, with full jitter: many that wait for the same
// do not ask all at the same time.
type Pauses struct {
	Limit time.Duration
	bound time.Duration
}

// first also bounds how often one asks who resets the pauses at each answer.
const first = 20 * time.Millisecond

// Next is the next pause.
func (p *Pauses) Next() time.Duration {
	p.bound = min(max(2*p.bound, first), p.Limit)
	return rand.N(p.bound) + 1 //nolint:gosec // jitter needs no secrecy
}

// Reset starts anew with short pauses.
func (p *Pauses) Reset() { p.bound = 0 }
