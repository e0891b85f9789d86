// Package survey reads a group's results and the progress of its list. All commands use it, so that their
// numbers agree.
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

// Results reads the named results, and calls each from several goroutines. An unreadable result becomes
// Foreign. For a chunk it reads the summary, and the jobs only if withJobs returns true. If withJobs is nil,
// each result is read once, as a whole.
func Results(ctx context.Context, src source.Ledger, names []string, withJobs func(multilock.Result) bool, each func(i int, r multilock.Result)) {
	_ = parallel.Do(parallel.Requests, len(names), func(i int) error { // the callback returns no error
		r, err := read(ctx, src, names[i], withJobs)
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

func read(ctx context.Context, src source.Ledger, name string, withJobs func(multilock.Result) bool) (multilock.Result, error) {
	whole := func() (multilock.Result, error) {
		return bounded.Call(ctx, func(ctx context.Context) (multilock.Result, error) { return src.Result(ctx, name) })
	}
	if withJobs == nil {
		r, err := whole()
		if err == nil && r.Foreign == "" || errors.Is(err, multilock.ErrNoResult) || !joblist.IsChunk(name) {
			return r, err
		}
	}
	r, err := joblist.Summary(ctx, src, name)
	if err == nil && r.Chunk != nil && withJobs != nil && withJobs(r) {
		return whole()
	}
	return r, err
}

// Summaries is a withJobs that requests no jobs.
func Summaries(multilock.Result) bool { return false }
