// Package survey reads a group's results and the progress of its list. All commands read them here,
// so that their numbers agree.
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

// Results reads the named results and passes them to each, from several goroutines. An unreadable
// result becomes Foreign. A chunk's result is its summary, unless withJobs asks for its jobs as well.
func Results(ctx context.Context, src source.Ledger, names []string, withJobs func(multilock.Result) bool, each func(i int, r multilock.Result)) {
	_ = parallel.Do(parallel.Requests, len(names), func(i int) error { // the callback returns no error
		r, err := joblist.Summary(ctx, src, names[i])
		if err == nil && r.Chunk != nil && withJobs(r) {
			r, err = bounded.Call(ctx, func(ctx context.Context) (multilock.Result, error) { return src.Result(ctx, names[i]) })
		}
		switch {
		case errors.Is(err, multilock.ErrNoResult):
			return nil
		case err != nil:
			r = multilock.Result{Foreign: err.Error()}
		}
		r.Name = names[i]
		each(i, r)
		return nil
	})
}

// Summaries asks for no chunk's jobs.
func Summaries(multilock.Result) bool { return false }
