// Package joblist reads a group's list of jobs and the results of its chunks: neighbouring jobs
// that are claimed with one lock.
package joblist

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/internal/parallel"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

const chunkPrefix = "#jobs-"

// ChunkName returns the name of the lock and result of a chunk: the jobs with these numbers.
func ChunkName(r source.Range) string {
	return chunkPrefix + strconv.Itoa(r.From) + "-" + strconv.Itoa(r.To)
}

// ParseChunkName parses the name of a chunk; ok is false for any other name.
func ParseChunkName(name string) (r source.Range, ok bool) {
	numbers, ok := strings.CutPrefix(name, chunkPrefix)
	if !ok {
		return source.Range{}, false
	}
	from, to, _ := strings.Cut(numbers, "-")
	r.From, _ = strconv.Atoi(from)
	r.To, _ = strconv.Atoi(to)
	if r.From < 1 || r.To < r.From || name != ChunkName(r) {
		return source.Range{}, false
	}
	return r, true
}

// IsChunk reports whether a name is the name of a chunk.
func IsChunk(name string) bool {
	_, ok := ParseChunkName(name)
	return ok
}

// EachJob calls f with the results of the recorded jobs of a chunk, or with r itself.
func EachJob(r multilock.Result, f func(name string, r multilock.Result)) {
	if r.Chunk == nil {
		f(r.Name, r)
		return
	}
	for _, job := range r.Chunk.Jobs {
		f(job.Name, job.Result(r))
	}
}

// Summary reads a result without the jobs of its chunk, if the source can.
func Summary(ctx context.Context, src source.Ledger, name string) (multilock.Result, error) {
	read := src.Result
	if chunks, ok := src.(source.Chunks); ok {
		read = chunks.Summary
	}
	return bounded.Call(ctx, func(ctx context.Context) (multilock.Result, error) { return read(ctx, name) })
}

// Notable reports whether a chunk has jobs with more to report than a plain success.
func Notable(r multilock.Result) bool {
	return r.Chunk != nil && (r.Chunk.Recorded > r.Chunk.Done || r.Chunk.Incomplete > 0)
}

// EachResult reads the results of these names and calls f with them, concurrently; for a chunk,
// with the results of its jobs. It returns the first error.
func EachResult(ctx context.Context, src source.Ledger, names []string, f func(name string, r multilock.Result)) error {
	return parallel.Do(parallel.Requests, len(names), func(i int) error {
		r, err := bounded.Call(ctx, func(ctx context.Context) (multilock.Result, error) { return src.Result(ctx, names[i]) })
		if err == nil {
			EachJob(r, f)
		}
		if errors.Is(err, multilock.ErrNoResult) {
			return nil // deleted since the listing, or not visible yet
		}
		return err
	})
}
