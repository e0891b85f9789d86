package lockgroup

import (
	"context"
	"math/rand/v2"
	"time"
)

// pauses grow exponentially up to a limit, with full jitter: many barriers that
// wait for one group do not ask all at the same time.
type pauses struct {
	limit time.Duration
	bound time.Duration
}

// firstPause also bounds how often a barrier asks while news keep coming.
const firstPause = 20 * time.Millisecond

func (p *pauses) next() time.Duration {
	p.bound = min(max(2*p.bound, firstPause), p.limit)
	return rand.N(p.bound) + 1 //nolint:gosec // jitter needs no secrecy
}

func (p *pauses) reset() { p.bound = 0 }

// sleep ends early with news, and says so.
func sleep(ctx context.Context, d time.Duration, news <-chan struct{}) (early bool, err error) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case <-news:
		return true, nil
	case <-timer.C:
		return false, nil
	}
}
