package remote

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/multilock/go/internal/bounded"
)

// LongestPause is the longest pause between two tries.
const LongestPause = 500 * time.Millisecond

const (
	tries         = 4 // how many tries the time limit is divided into
	leastTry      = 500 * time.Millisecond
	shortestPause = 20 * time.Millisecond
)

// Tried is the outcome of a try.
type Tried struct {
	Doubt  bool // the reply was lost: it may have taken effect, or may still do so
	Again  bool // another try makes sense
	Told   bool // the error is the server's
	Nobody bool // no server was ever reached
}

// Repeat repeats try until it is answered, or the time limit has passed; a single try is cancelled
// after longest. doubt reports whether an unanswered try may still take effect, however late. If no
// server was ever reached, Repeat fails at once, because a wrong URL does not become right. If the
// time limit has passed, the error is the server's last error, if there was one, because that is
// the reason.
func Repeat(ctx context.Context, limit, longest time.Duration, try func(context.Context) (Tried, error)) (doubt bool, err error) {
	limited, cancel := Outlive(ctx, limit)
	defer cancel()
	var told error
	for pause := shortestPause; ; pause = min(2*pause, LongestPause) {
		trying, done := context.WithTimeout(limited, min(max(limit/tries, leastTry), longest))
		var tried Tried
		tried, err = try(trying)
		done()
		doubt = doubt || tried.Doubt
		switch {
		case tried.Told:
			told = err
		case told != nil && errors.Is(err, context.DeadlineExceeded):
			err = told
		}
		if !tried.Again || limited.Err() != nil || ctx.Err() != nil || !doubt && tried.Nobody {
			return doubt, err
		}
		_ = bounded.Sleep(limited, pause/2+rand.N(pause)) //nolint:gosec // jitter needs no secrecy
	}
}
