package joblist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// Placed is the position of a job in the group's list.
type Placed struct {
	// Number is the job's number in the list, from 1.
	Number int
	// Chunk is the chunk in which the job runs, zero if no host has begun it.
	Chunk source.Range
	// Result is the job's result, nil if it has none.
	Result *multilock.Result
}

// Final reports whether the job will not run again.
func (p Placed) Final() bool {
	return p.Result != nil && (p.Result.Final || p.Result.Foreign != "")
}

// Find finds jobs by their names. It reads the group's manifest and one result per chunk. held are
// the names of the held locks. Find omits names that are in no list.
func Find(ctx context.Context, src source.Ledger, names, held []string) (map[string]Placed, error) {
	manifests, ok := src.(source.ManifestStore)
	if !ok || len(names) == 0 {
		return nil, nil
	}
	numbers, err := Numbers(ctx, manifests, names)
	if err != nil || len(numbers) == 0 {
		return nil, err
	}
	recorded, err := bounded.Call(ctx, src.Results)
	if err != nil {
		return nil, err
	}
	f := finder{src: src, chunks: chunksAmong(slices.Concat(recorded, held)), read: map[source.Range]multilock.Result{}}
	found := map[string]Placed{}
	for name, number := range numbers {
		if found[name], err = f.place(ctx, name, number); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// Numbers reads the numbers of jobs from the manifest.
func Numbers(ctx context.Context, src source.ManifestStore, names []string) (map[string]int, error) {
	inManifest, wanted := strings.NewReplacer("\\", `\\`, "\n", `\n`), map[string]string{}
	for _, name := range names {
		wanted[inManifest.Replace(name)] = name
	}
	numbers := map[string]int{}
	err := Each(ctx, src, func(j Job) bool {
		if name, ok := wanted[string(j.name)]; ok {
			numbers[name] = j.Number
		}
		return len(numbers) < len(wanted)
	})
	return numbers, err
}

// chunksAmong returns the chunks among names, the smallest first.
func chunksAmong(names []string) (chunks []source.Range) {
	for _, name := range names {
		if r, ok := ParseChunkName(name); ok {
			chunks = append(chunks, r)
		}
	}
	slices.SortFunc(chunks, func(a, b source.Range) int { return cmp.Compare(a.To-a.From, b.To-b.From) })
	return chunks
}

// Nest is a chunk with the parts that were given back.
type Nest struct {
	source.Range
	Parts []*Nest
}

// Nests returns the outermost chunks among names.
func Nests(names []string) (outermost []*Nest) {
	chunks := chunksAmong(names)
	slices.SortFunc(chunks, func(a, b source.Range) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(b.To, a.To)) })
	var around []*Nest
	for _, chunk := range chunks {
		for len(around) > 0 && around[len(around)-1].To < chunk.To {
			around = around[:len(around)-1]
		}
		n := &Nest{Range: chunk}
		if last := len(around) - 1; last >= 0 {
			around[last].Parts = append(around[last].Parts, n)
		} else {
			outermost = append(outermost, n)
		}
		around = append(around, n)
	}
	return outermost
}

// Names returns the result names of a chunk and of all chunks inside it.
func (n *Nest) Names() []string {
	names := []string{ChunkName(n.Range)}
	for _, part := range n.Parts {
		names = append(names, part.Names()...)
	}
	return names
}

// finder finds jobs in chunks. It reads the result of each chunk once.
type finder struct {
	src    source.Ledger
	chunks []source.Range
	read   map[source.Range]multilock.Result
}

func (f *finder) place(ctx context.Context, name string, number int) (Placed, error) {
	p := Placed{Number: number}
	in := func(r source.Range) bool { return r.From <= number && number <= r.To }
	at := slices.IndexFunc(f.chunks, in)
	if at < 0 {
		return p, nil
	}
	p.Chunk = f.chunks[at] // a part that was given back is a chunk as well
	r, err := f.result(ctx, p.Chunk)
	switch {
	case errors.Is(err, multilock.ErrNoResult):
		return p, nil
	case err != nil:
		return p, err
	case r.Chunk == nil:
		r.Name = name
		p.Result = &r
		return p, nil
	}
	if given := slices.IndexFunc(r.Chunk.Returned, in); given >= 0 {
		p.Chunk = r.Chunk.Returned[given]
		return p, nil
	}
	for _, job := range r.Chunk.Jobs {
		if job.Number == number && job.Name == name {
			result := job.Result(r)
			p.Result = &result
		}
	}
	return p, nil
}

func (f *finder) result(ctx context.Context, chunk source.Range) (multilock.Result, error) {
	if r, ok := f.read[chunk]; ok {
		return r, nil
	}
	r, err := bounded.Call(ctx, func(ctx context.Context) (multilock.Result, error) { return f.src.Result(ctx, ChunkName(chunk)) })
	if err == nil {
		f.read[chunk] = r
	}
	return r, err
}

// Forget deletes the results of some jobs of a chunk, under its lock, so that they run again. It
// returns the names of jobs that had a result. A process that relied on the progress map does not notice
// the deletion: see source.Chunks.
func Forget(ctx context.Context, lock *multilock.Lock, asked func(number int, r multilock.Result) bool) (forgotten []string, err error) {
	last, err := lock.Outcome(ctx)
	switch {
	case errors.Is(err, multilock.ErrNoResult):
		return nil, nil
	case err != nil:
		return nil, err
	case last.Chunk == nil:
		return nil, fmt.Errorf("the result of %s cannot be read: %s; \"clean --results\" without names removes it with all others",
			last.Name, cmp.Or(last.Foreign, "it is that of a job"))
	}
	record, chunk := lock.Record(), *last.Chunk
	chunk.Jobs = nil
	for _, job := range last.Chunk.Jobs {
		if asked(job.Number, job.Result(last)) {
			forgotten = append(forgotten, job.Name)
			continue
		}
		if job = job.On(last.By.Host); job.Host == record.Holder.Host {
			job.Host = ""
		}
		chunk.Jobs = append(chunk.Jobs, job)
	}
	if len(forgotten) == 0 {
		return nil, nil
	}
	chunk.Count()
	last.Token, last.By, last.Chunk, last.Final = record.Token, record.Holder.Identity, &chunk, chunk.Final()
	if chunk.Failed == 0 {
		last.Exit, last.Why = 0, ""
	}
	return forgotten, lock.Commit(ctx, last)
}
