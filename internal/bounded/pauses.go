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
	// Chance draws a number below n; nil: as it comes.
	Chance func(n int64) int64
	bound  time.Duration
	wait   time.Duration // if not 0, what the whole wait may take: see Expect
	began  time.Time
}

// usualFirst also bounds how often one asks who resets the pauses at each answer.
const usualFirst = 20 * time.Millisecond

// leastExpected is the shortest bound in a wait of which it is known that it takes time.
const leastExpected = 4 * time.Millisecond

// Next is the next pause.
func (p *Pauses) Next() time.Duration {
	if p.Least > 0 {
		return p.Least + p.below(p.Limit-p.Least+1)
	}
	if p.wait > 0 {
		return p.upperHalf(p.expected())
	}
	if p.bound == p.Limit {
		return p.upperHalf(p.Limit)
	}
	p.bound = min(max(2*p.bound, cmp.Or(p.First, usualFirst)), p.Limit)
	return p.below(p.bound) + 1
}

// Expect begins a wait that may take so long, for many want the same: who has not waited for
// that yet asks rarely, with up to twice the limit in between, and later as often as others
// who have waited for long.
func (p *Pauses) Expect(wait time.Duration) { p.wait, p.began = wait, time.Now() }

// expected bounds the next pause in such a wait.
func (p *Pauses) expected() time.Duration {
	if age := time.Since(p.began); age >= p.wait {
		return min(max(age/4, leastExpected), p.Limit)
	}
	return min(max(p.wait/2, leastExpected), 2*p.Limit)
}

// Early is the part of the expected wait that is left, from 1 to 0.
func (p *Pauses) Early() float64 {
	if p.wait == 0 {
		return 0
	}
	return max(1-float64(time.Since(p.began))/float64(p.wait), 0)
}

func (p *Pauses) upperHalf(bound time.Duration) time.Duration {
	return bound/2 + p.below(bound-bound/2) + 1
}

func (p *Pauses) below(d time.Duration) time.Duration {
	if p.Chance == nil {
		return rand.N(d) //nolint:gosec // jitter needs no secrecy
	}
	return time.Duration(p.Chance(int64(d)))
}

// Reset starts anew with short pauses.
func (p *Pauses) Reset() { p.bound = 0 }

// Slow leaves out the shortest pauses, for others wait, too.
func (p *Pauses) Slow() { p.bound = max(p.bound, p.Limit/4) }
