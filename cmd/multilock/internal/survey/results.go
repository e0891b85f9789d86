// Package survey reads what a source knows of a group: how its jobs ended, and how far its
// list has come. Every command that shows a group reads it here, so their numbers agree.
package survey

import (
	"context"
	"errors"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/internal/parallel"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// Results reads the results of these names, and passes each to tell with the number of its
// name. It calls tell from several goroutines. A result that cannot be read is passed on as
// Foreign. That of a chunk is its summary, or has its jobs if whole says so of the summary.
func Results(ctx context.Context, src source.Ledger, names []string, whole func(multilock.Result) bool, tell func(i int, r multilock.Result)) {
	_ = parallel.Do(parallel.Requests, len(names), func(i int) error { // a call returns no error
		r, err := joblist.Summary(ctx, src, names[i])
		if err == nil && r.Chunk != nil && whole(r) {
			r, err = bounded.Call(ctx, func(ctx context.Context) (multilock.Result, error) { return src.Result(ctx, names[i]) })
		}
		switch {
		case errors.Is(err, multilock.ErrNoResult):
			return nil
		case err != nil:
			r = multilock.Result{Foreign: err.Error()}
		}
		r.Name = names[i]
		tell(i, r)
		return nil
	})
}

// Summaries says of every chunk that its summary is enough.
func Summaries(multilock.Result) bool { return false }
