package lockgroup

import (
	"strconv"
	"strings"

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

func isChunk(name string) bool {
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
