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

// results is what is known of the results that a barrier waits for. One that is final is
// read once, and that of a chunk in which there is nothing to be told of no further than its
// summary: of many jobs most are successes, and of those only the number is kept.
type results struct {
	src     source.Changes
	members map[string]bool // nil: any names

	// Only the polling goroutine uses these.
	revision string
	seen     bool
	again    time.Time // when the results have to be listed once more, though their revision is the same
	rest     time.Time // not before then: listing a large group often would be all that happens

	mu      sync.Mutex
	settled map[string]bool  // the results that need not be read any more
	told    map[string]tally // by the others, and by those that name jobs
	asked   bool             // the group's list was asked for the members
	listed  []listed         // those that it has, in its order
	placed  bool             // it has all of which there is no final result
	all     tally            // what all of them told together, without names
	missing map[string]bool  // the members without a final result
}

// listed is a member, with its number in the group's list.
type listed struct {
	number int
	name   string
}

// tally is what one result tells of the jobs that count.
type tally struct {
	done, final        int
	failed, incomplete []multilock.Result
}

const (
	// sameStamp is the time within which two changes can leave the same stamp.
	sameStamp = 2 * time.Second
	// leisure is how many times as long as it took to list the results they are left alone.
	leisure = 20
	maxRest = 10 * time.Second
)

func newResults(src source.Changes, members []string) *results {
	r := &results{src: src, settled: map[string]bool{}, told: map[string]tally{}}
	if len(members) > 0 {
		r.members, r.missing = map[string]bool{}, map[string]bool{}
	}
	for _, name := range members {
		r.members[name], r.missing[name] = true, true
	}
	return r
}

// update asks for the results' revision, and reads what is new. It reports
// whether that brought any final result.
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

// place learns from the group's list which chunks the members are in: each time anew, for
// another list may have come. Where nobody can tell, any chunk may have them.
func (r *results) place(ctx context.Context, names []string) {
	missing := r.missed()
	var numbers map[string]int
	if list, ok := r.src.(source.ManifestReader); ok && slices.ContainsFunc(names, joblist.IsChunk) {
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

// missed are the members without a final result.
func (r *results) missed() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.missing))
}

// missingIn are the members of a chunk without a final result. The caller holds the mutex.
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

// read reads those results that are not known to be final.
func (r *results) read(ctx context.Context, names []string) error {
	names = slices.DeleteFunc(names, func(name string) bool { return !r.awaited(name) })
	return parallel.Do(parallel.Requests, len(names), func(i int) error {
		if r.complete() {
			return nil
		}
		result, err := r.readOne(ctx, names[i])
		switch {
		case errors.Is(err, multilock.ErrNoResult):
			return nil // forgotten meanwhile, or not to be seen yet
		case err != nil:
			return err
		}
		r.note(names[i], result)
		return nil
	})
}

// readOne reads no more of a chunk than its summary, if only the number of its jobs counts.
func (r *results) readOne(ctx context.Context, name string) (multilock.Result, error) {
	if r.members == nil {
		result, err := joblist.Summary(ctx, r.src, name)
		if err != nil || !joblist.Telling(result) {
			return result, err
		}
	}
	return bounded.Call(ctx, func(ctx context.Context) (multilock.Result, error) { return r.src.Result(ctx, name) })
}

// awaited says whether a result may tell of a job whose final result is still to come, and
// so may the holder of its lock.
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

// note keeps what a result tells. Members are kept by their own names: they may come to be in
// another chunk.
func (r *results) note(name string, result multilock.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	result.Name = name
	r.settled[name] = result.Final || result.Foreign != "" || result.Chunk == nil && result.OK()
	chunk, ok := joblist.ParseChunkName(name)
	switch {
	case ok && result.Foreign != "":
		r.keep(name, tally{final: r.unreadable(chunk), failed: []multilock.Result{result}})
	case r.members == nil:
		r.keep(name, tallyOf(result))
	default:
		joblist.EachJob(result, func(name string, job multilock.Result) {
			if !r.members[name] {
				return
			}
			if t := tallyOf(job); t.final > 0 {
				r.keep(name, t)
			}
		})
	}
}

// keep keeps a tally in the place of the one of that name before. The caller holds the mutex.
func (r *results) keep(name string, now tally) {
	before := r.told[name]
	r.all.done += now.done - before.done
	r.all.final += now.final - before.final
	r.told[name] = now
	delete(r.missing, name)
	if r.members == nil && r.settled[name] && len(now.failed)+len(now.incomplete) == 0 {
		delete(r.told, name)
	}
}

// tallyOf tells a result's jobs apart. One that may be tried once more is not done, and one
// whose record nobody can read is not known to have succeeded.
func tallyOf(result multilock.Result) (t tally) {
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

// unreadable is how many of the jobs in a chunk count whose result cannot be understood: all,
// if nobody knows what they are called. They are not waited for. The caller holds the mutex.
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

// complete says whether all members have a final result.
func (r *results) complete() bool { return r.members != nil && r.count() >= r.wanted() }

// count is how many jobs have a final result.
func (r *results) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all.final
}

// Successes are the names of which a history tells successes and nothing else. A failure
// can follow only after a success was forgotten, so the result that is there is one, too.
type Successes map[string]bool

// Add takes the next event into account.
func (s Successes) Add(e source.Event) {
	switch before, met := s[e.Name]; e.What {
	case source.EventForgot:
		s[e.Name] = false
	case source.EventCommitted:
		s[e.Name] = (before || !met) && e.OK()
	}
}
