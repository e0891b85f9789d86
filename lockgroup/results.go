package lockgroup

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/internal/parallel"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// results are the results that a barrier has read. It reads a final result once, and of a chunk
// without failures only the summary. Of successes it keeps only the number.
type results struct {
	src     source.Ledger
	members map[string]bool // nil: any names

	// Only the polling goroutine uses these.
	revision string
	seen     bool
	again    time.Time // time of another listing, even if the revision is the same
	rest     time.Time // time of the earliest next listing: listing a large group is slow

	mu       sync.Mutex
	settled  map[string]bool   // results that need not be read again
	reported map[string]counts // counts with failed or incomplete jobs, and those of members
	asked    bool              // the group's list was searched for the members
	listed   []listed          // the members found there, in its order
	placed   bool              // all members without a final result were found
	all      counts            // the sum over all results, without names
	missing  map[string]bool   // members without a final result
}

// listed is a member with its number in the group's list.
type listed struct {
	number int
	name   string
}

// counts is what one result adds to the totals.
type counts struct {
	done, final        int
	failed, incomplete []multilock.Result
}

const (
	// sameStamp is the time within which two changes can have the same timestamp.
	sameStamp = 2 * time.Second
	// leisure is the pause between two listings, in multiples of the duration of a listing.
	leisure = 20
	maxRest = 10 * time.Second
)

func newResults(src source.Ledger, members []string) *results {
	r := &results{src: src, settled: map[string]bool{}, reported: map[string]counts{}}
	if len(members) > 0 {
		r.members, r.missing = map[string]bool{}, map[string]bool{}
	}
	for _, name := range members {
		r.members[name], r.missing[name] = true, true
	}
	return r
}

// update lists and reads the results if their revision changed. It reports whether there are new
// final results.
func (r *results) update(ctx context.Context) (progress bool, err error) {
	revision, err := bounded.Call(ctx, r.src.Revision)
	if err != nil {
		return false, err
	}
	now := time.Now()
	changed := !r.seen || revision != r.revision
	due := changed || (!r.again.IsZero() && !now.Before(r.again))
	if !due || now.Before(r.rest) {
		return false, nil
	}
	before := r.count()
	names, err := bounded.Call(ctx, r.src.Results)
	if r.members != nil {
		r.place(ctx, names)
	}
	took := time.Since(now)
	if err == nil {
		err = r.read(ctx, names)
	}
	if err != nil {
		return false, err
	}
	r.again = time.Time{}
	if changed {
		r.again = now.Add(sameStamp)
	}
	r.revision, r.seen = revision, true
	r.rest = time.Now().Add(min(leisure*took, maxRest))
	return r.count() > before, nil
}

// place finds the members' chunks in the group's list, each time, since the list may change.
// Without a list, any chunk may have them.
func (r *results) place(ctx context.Context, names []string) {
	missing := r.missed()
	var numbers map[string]int
	if list, ok := r.src.(source.ManifestStore); ok && slices.ContainsFunc(names, joblist.IsChunk) {
		numbers, _ = bounded.Call(ctx, func(ctx context.Context) (map[string]int, error) { return joblist.Numbers(ctx, list, missing) })
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked, r.placed, r.listed = true, len(numbers) == len(missing), nil
	for name, number := range numbers {
		r.listed = append(r.listed, listed{number, name})
	}
	slices.SortFunc(r.listed, func(a, b listed) int { return cmp.Compare(a.number, b.number) })
}

// missed returns the members without a final result.
func (r *results) missed() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.missing))
}

// missingIn returns the members of a chunk without a final result. The caller holds the mutex.
func (r *results) missingIn(chunk source.Range) (names []string) {
	at, _ := slices.BinarySearchFunc(r.listed, chunk.From, func(l listed, from int) int { return cmp.Compare(l.number, from) })
	for _, l := range r.listed[at:] {
		if l.number > chunk.To {
			break
		}
		if r.missing[l.name] {
			names = append(names, l.name)
		}
	}
	return names
}

// read reads the results that are not known to be final.
func (r *results) read(ctx context.Context, names []string) error {
	names = slices.DeleteFunc(names, func(name string) bool { return !r.awaited(name) })
	return parallel.Do(parallel.Requests, len(names), func(i int) error {
		if r.complete() {
			return nil
		}
		result, err := r.readOne(ctx, names[i])
		switch {
		case errors.Is(err, multilock.ErrNoResult):
			return nil // deleted since the listing, or not visible yet
		case err != nil:
			return err
		}
		r.note(names[i], result)
		return nil
	})
}

// readOne reads only the summary of a chunk if that is enough.
func (r *results) readOne(ctx context.Context, name string) (multilock.Result, error) {
	if r.members == nil {
		result, err := joblist.Summary(ctx, r.src, name)
		if err != nil || !joblist.Notable(result) {
			return result, err
		}
	}
	return bounded.Call(ctx, func(ctx context.Context) (multilock.Result, error) { return r.src.Result(ctx, name) })
}

// awaited reports whether a result, or a lock's holder, may concern a job without a final result.
func (r *results) awaited(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	chunk, ok := joblist.ParseChunkName(name)
	switch {
	case r.members == nil:
		return !r.settled[name]
	case !ok:
		return r.missing[name]
	case r.placed:
		return len(r.missingIn(chunk)) > 0
	}
	return r.asked && !r.settled[name] && len(r.missing) > 0
}

// note adds a result. It keeps members under their own names, since their chunk may change.
func (r *results) note(name string, result multilock.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	result.Name = name
	r.settled[name] = result.Final || result.Foreign != "" || result.Chunk == nil && result.OK()
	chunk, ok := joblist.ParseChunkName(name)
	switch {
	case ok && result.Foreign != "":
		r.keep(name, counts{final: r.unreadable(chunk), failed: []multilock.Result{result}})
	case r.members == nil:
		r.keep(name, countsOf(result))
	default:
		joblist.EachJob(result, func(name string, job multilock.Result) {
			if !r.members[name] {
				return
			}
			if t := countsOf(job); t.final > 0 {
				r.keep(name, t)
			}
		})
	}
}

// keep replaces the counts of a name. The caller holds the mutex.
func (r *results) keep(name string, now counts) {
	before := r.reported[name]
	r.all.done += now.done - before.done
	r.all.final += now.final - before.final
	r.reported[name] = now
	delete(r.missing, name)
	if r.members == nil && r.settled[name] && len(now.failed)+len(now.incomplete) == 0 {
		delete(r.reported, name)
	}
}

// countsOf counts a result's jobs. A job with retries left is not done, and a job with a result in
// an unknown format counts as failed.
func countsOf(result multilock.Result) (t counts) {
	joblist.EachJob(result, func(_ string, job multilock.Result) {
		switch {
		case job.OK():
			if t.done++; job.Output != "" {
				t.incomplete = append(t.incomplete, job)
			}
		case job.Final, job.Foreign != "":
			t.failed = append(t.failed, job)
		}
	})
	if result.Chunk != nil { // its jobs may not have been read
		t.done, t.final = result.Chunk.Done, result.Chunk.Done+result.Chunk.Failed
		return t
	}
	t.final = t.done + len(t.failed)
	return t
}

// unreadable returns how many awaited jobs are in a chunk whose result has an unknown format, and
// stops waiting for them. That is the whole chunk if its members are unknown. The caller holds the
// mutex.
func (r *results) unreadable(chunk source.Range) int {
	if !r.placed {
		return chunk.To - chunk.From + 1
	}
	names := r.missingIn(chunk)
	for _, name := range names {
		delete(r.missing, name)
	}
	return len(names)
}

func (r *results) wanted() int { return len(r.members) }

// complete reports whether all members have a final result.
func (r *results) complete() bool { return r.members != nil && r.count() >= r.wanted() }

// count returns how many jobs have a final result.
func (r *results) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all.final
}
