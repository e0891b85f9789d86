package bounded

import (
	"cmp"
	"math/rand/v2"
	"time"
)

// Pauses grow exponentially up to a limit, with full jitter: each is drawn evenly from zero to the
// current bound, which spreads many waiters better than any fixed part would. At the limit waiters are
// spread already and wait for long, so their pauses are at least half of it: that saves a third of the
// requests and hardly delays the one that succeeds.
type Pauses struct {
	First time.Duration // the bound of the first pause, 20 ms if 0
	Limit time.Duration
	Least time.Duration // if not 0, all pauses are between this and the limit, to limit the load
	// Chance draws a number below n; math/rand if nil.
	Chance func(n int64) int64
	bound  time.Duration
	wait   time.Duration // if not 0, the expected duration of the whole wait: see Expect
	began  time.Time
}

// usualFirst also limits the rate of a caller that resets the pauses at each answer.
const usualFirst = 20 * time.Millisecond

// leastExpected is the shortest bound in a wait with an expected duration.
const leastExpected = 4 * time.Millisecond

// Next returns the next pause.
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

// Expect starts a wait that is expected to take this long, because many processes compete. A waiter polls
// rarely before that, with pauses up to twice the limit, and later as often as other long waiters.
func (p *Pauses) Expect(wait time.Duration) { p.wait, p.began = wait, time.Now() }

// expected returns the bound of the next pause in such a wait.
func (p *Pauses) expected() time.Duration {
	if age := time.Since(p.began); age >= p.wait {
		return min(max(age/4, leastExpected), p.Limit)
	}
	return min(max(p.wait/2, leastExpected), 2*p.Limit)
}

// Early returns the remaining part of the expected wait, from 1 to 0.
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

// Reset restarts with short pauses.
func (p *Pauses) Reset() { p.bound = 0 }

// Slow skips the shortest pauses, because of contention.
func (p *Pauses) Slow() { p.bound = max(p.bound, p.Limit/4) }
