package batch

import (
	"context"
	"slices"
	"time"

	"github.com/multilock/go/internal/bounded"
)

// recorded is a listing of the results, for the claims of parts. When a list ends many hosts
// know of the same parts, and most of them come too late: to find that out under a part's lock
// costs many times as much, for each host and each part.
type recorded struct {
	turn  chan struct{} // has an element while somebody uses what is below
	names map[string]bool
	at    time.Time
}

func newRecorded() *recorded { return &recorded{turn: make(chan struct{}, 1)} }

// has says whether there is a result. It may be one that is not final. A listing that fails
// tells of none: what it would have told is learned under the lock, too.
func (r *recorded) has(ctx context.Context, src Source, name string) bool {
	select {
	case <-ctx.Done():
		return false
	case r.turn <- struct{}{}:
	}
	defer func() { <-r.turn }()
	if time.Since(r.at) >= boardFresh {
		r.list(ctx, src)
	}
	return r.names[name]
}

// all says whether all of these have a result now.
func (r *recorded) all(ctx context.Context, src Source, names []string) bool {
	select {
	case <-ctx.Done():
		return false
	case r.turn <- struct{}{}:
	}
	defer func() { <-r.turn }()
	r.list(ctx, src)
	return !slices.ContainsFunc(names, func(name string) bool { return !r.names[name] })
}

func (r *recorded) list(ctx context.Context, src Source) {
	names, err := bounded.Call(ctx, src.Results)
	r.names, r.at = map[string]bool{}, time.Now()
	if err != nil {
		return
	}
	for _, name := range names {
		r.names[name] = true
	}
}
