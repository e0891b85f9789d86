package show

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// Chunk is the progress of the jobs that run under one lock.
type Chunk struct {
	From   int `json:"from"`
	To     int `json:"to"`
	Done   int `json:"done"`
	Failed int `json:"failed"`
}

// chunkUnder returns the chunk whose lock has this name, nil for a job's own lock. It ignores read
// errors, because the lock's state is known without the counts.
func chunkUnder(ctx context.Context, locks multilock.Source, name string) *Chunk {
	jobs, ok := joblist.ParseChunkName(name)
	if !ok {
		return nil
	}
	c := &Chunk{From: jobs.From, To: jobs.To}
	if ledger, ok := locks.(source.Ledger); ok {
		if r, err := joblist.Summary(ctx, ledger, name); err == nil && r.Chunk != nil {
			c.Done, c.Failed = r.Chunk.Done, r.Chunk.Failed
		}
	}
	return c
}

func (c *Chunk) several() bool { return c != nil && c.From < c.To }

func (c *Chunk) text() string {
	return fmt.Sprintf("%s, %d done", source.Range{From: c.From, To: c.To}, c.Done) + Some(c.Failed, "failed")
}

// Label formats the name of a job or chunk for display.
func Label(name string) string {
	if jobs, ok := joblist.ParseChunkName(name); ok {
		return jobs.String()
	}
	return console.Label(name)
}

// Subject is Label for the beginning of a sentence.
func Subject(name string) string {
	if jobs, ok := joblist.ParseChunkName(name); ok {
		return jobs.String()
	}
	return fmt.Sprintf("job %q", name)
}

// nameOfChunk returns a chunk's lock name, for texts whose Label lacks it; "" for a job.
func nameOfChunk(name string) string {
	if _, ok := joblist.ParseChunkName(name); ok {
		return fmt.Sprintf(" %q", name)
	}
	return ""
}

// LockWords names a lock and, for a chunk's lock, the jobs that run under it.
func LockWords(name string) string {
	if jobs, ok := joblist.ParseChunkName(name); ok {
		return fmt.Sprintf("lock %q (%s)", name, jobs)
	}
	return fmt.Sprintf("lock %q", name)
}

// splitChunks separates the names of chunks, in list order, from other names.
func splitChunks(names []string) (others []string, chunks []source.Range) {
	for _, name := range names {
		if chunk, ok := joblist.ParseChunkName(name); ok {
			chunks = append(chunks, chunk)
		} else {
			others = append(others, name)
		}
	}
	slices.SortFunc(chunks, func(a, b source.Range) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	return others, chunks
}

// JoinChunks separates the names of chunks from other names, and merges adjacent chunks.
func JoinChunks(names []string) (others []string, joined []source.Range) {
	others, chunks := splitChunks(names)
	for _, chunk := range chunks {
		if n := len(joined); n > 0 && chunk.From <= joined[n-1].To+1 {
			joined[n-1].To = max(joined[n-1].To, chunk.To)
			continue
		}
		joined = append(joined, chunk)
	}
	return others, joined
}
