package lockgroup

import (
	"fmt"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

const chunkName = "#jobs-%d-%d"

// ChunkName is the name of the lock, and of the result, of a chunk of a list: of the jobs
// with these numbers, from 1.
func ChunkName(r source.Range) string { return fmt.Sprintf(chunkName, r.From, r.To) }

// ParseChunkName reads such a name; ok is false if it is none.
func ParseChunkName(name string) (r source.Range, ok bool) {
	if _, err := fmt.Sscanf(name, chunkName, &r.From, &r.To); err != nil {
		return source.Range{}, false
	}
	return r, 1 <= r.From && r.From <= r.To && name == ChunkName(r)
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
