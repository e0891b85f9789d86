// Package joblist reads the list of jobs that a group works through, and the results of its
// chunks: neighbouring jobs that were claimed with one lock.
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

// ChunkName is the name of the lock, and of the result, of a chunk of a list: of the jobs
// with these numbers, from 1.
func ChunkName(r source.Range) string {
	return chunkPrefix + strconv.Itoa(r.From) + "-" + strconv.Itoa(r.To)
}

// ParseChunkName reads such a name; ok is false if it is none.
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

// IsChunk reports whether a name is that of a chunk.
func IsChunk(name string) bool {
	_, ok := ParseChunkName(name)
	return ok
}

// EachJob gives the results of the jobs of which r tells: of all that a chunk has recorded,
// or r itself.
func EachJob(r multilock.Result, f func(name string, r multilock.Result)) {
	if r.Chunk == nil {
		f(r.Name, r)
		return
	}
	for _, job := range r.Chunk.Jobs {
		f(job.Name, job.Result(r))
	}
}

// Summary is a result without the jobs of a chunk, where the source can tell that apart.
func Summary(ctx context.Context, src source.Ledger, name string) (multilock.Result, error) {
	read := src.Result
	if chunks, ok := src.(source.Chunks); ok {
		read = chunks.Summary
	}
	return bounded.Call(ctx, func(ctx context.Context) (multilock.Result, error) { return read(ctx, name) })
}

// Telling says whether there is more to be told of the jobs of a chunk than how many of
// them are done.
func Telling(r multilock.Result) bool {
	return r.Chunk != nil && (r.Chunk.Recorded > r.Chunk.Done || r.Chunk.Incomplete > 0)
}

// EachResult reads the results of these names, as far as there are any, and gives them to
// f, which is called side by side; of chunks, the results of their jobs. The error is the
// first that came up.
func EachResult(ctx context.Context, src source.Ledger, names []string, f func(name string, r multilock.Result)) error {
	return parallel.Do(parallel.Requests, len(names), func(i int) error {
		r, err := bounded.Call(ctx, func(ctx context.Context) (multilock.Result, error) { return src.Result(ctx, names[i]) })
		if err == nil {
			EachJob(r, f)
		}
		if errors.Is(err, multilock.ErrNoResult) {
			return nil // forgotten meanwhile, or not to be seen yet
		}
		return err
	})
}
