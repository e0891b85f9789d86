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

// Chunk is how far the jobs have come that are run under a lock.
type Chunk struct {
	From   int `json:"from"`
	To     int `json:"to"`
	Done   int `json:"done"`
	Failed int `json:"failed"`
}

// chunkUnder is the chunk whose jobs are run under the lock of a name; nil if that is a job's
// own. What cannot be read of it is not told: somebody may be at work there all the same.
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

// words are how far it has come, for people.
func (c *Chunk) words() string {
	return fmt.Sprintf("%s, %d done", source.Range{From: c.From, To: c.To}, c.Done) + Some(c.Failed, "failed")
}

// Label is how a job, or a chunk, is called in what people read.
func Label(name string) string {
	if jobs, ok := joblist.ParseChunkName(name); ok {
		return jobs.String()
	}
	return console.Label(name)
}

// Subject is the same where a sentence begins with it.
func Subject(name string) string {
	if jobs, ok := joblist.ParseChunkName(name); ok {
		return jobs.String()
	}
	return fmt.Sprintf("job %q", name)
}

// nameOfChunk is the name of a chunk's lock and result, behind words that do not have it;
// "" for a job.
func nameOfChunk(name string) string {
	if _, ok := joblist.ParseChunkName(name); ok {
		return fmt.Sprintf(" %q", name)
	}
	return ""
}

// LockWords names a lock, and the jobs that are run under it if it is that of a chunk.
func LockWords(name string) string {
	if jobs, ok := joblist.ParseChunkName(name); ok {
		return fmt.Sprintf("lock %q (%s)", name, jobs)
	}
	return fmt.Sprintf("lock %q", name)
}

// tellChunks tells the names of chunks, in the order of the list, from others.
func tellChunks(names []string) (others []string, chunks []source.Range) {
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

// JoinChunks tells the names of chunks from others, and puts those together that are
// neighbours.
func JoinChunks(names []string) (others []string, joined []source.Range) {
	others, chunks := tellChunks(names)
	for _, chunk := range chunks {
		if n := len(joined); n > 0 && chunk.From <= joined[n-1].To+1 {
			joined[n-1].To = max(joined[n-1].To, chunk.To)
			continue
		}
		joined = append(joined, chunk)
	}
	return others, joined
}
