package remote

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/multilock/go/internal/bounded"
)

// LongestPause is that between two tries.
const LongestPause = 500 * time.Millisecond

const (
	tries         = 4 // that the time of an operation is enough for, at least
	leastTry      = 500 * time.Millisecond
	shortestPause = 20 * time.Millisecond
)

// Tried is what is known after a try that failed, or did not.
type Tried struct {
	Doubt  bool // it may have been carried out without an answer, or may be later on
	Again  bool // another one makes sense
	Told   bool // the server has said why
	Nobody bool // there was nobody to talk to, nor ever before
}

// Repeat makes tries until there is an answer, or the time is over; each is left for another one after
// the longest time. It reports whether one that got no answer may still be carried out, however late. Where
// nobody was ever there, that is told at once: time does not mend a wrong URL. What a server has told
// is the error, also if the time was over in the end: it is why.
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
