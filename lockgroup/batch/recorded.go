package batch

import (
	"context"
	"slices"
	"time"

	"github.com/multilock/go/internal/bounded"
)

// recorded caches a listing of results, for claims of parts. At the end of a list many hosts compete
// for the same parts, and most are too late; finding that out under each part's lock costs much more.
type recorded struct {
	turn  chan struct{} // a semaphore that guards the other fields
	names map[string]bool
	at    time.Time
}

func newRecorded() *recorded { return &recorded{turn: make(chan struct{}, 1)} }

// has reports whether there is a result, final or not. It returns false if the listing fails: the
// caller then finds the result under the lock.
func (r *recorded) has(ctx context.Context, src Source, name string) bool {
	select {
	case <-ctx.Done():
		return false
	case r.turn <- struct{}{}:
	}
	defer func() { <-r.turn }()
	if time.Since(r.at) >= mapFresh {
		r.list(ctx, src)
	}
	return r.names[name]
}

// all lists the results again and reports whether all names have one.
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
