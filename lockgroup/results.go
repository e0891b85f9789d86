package lockgroup

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/multilock/go/internal/bounded"
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
	all     tally            // what all of them told together, without names
	missing map[string]bool  // the members without a final result
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
	listed := time.Since(now)
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
	r.rest = time.Now().Add(min(leisure*listed, maxRest))
	return r.count() > before, nil
}

// read reads those results that are not known to be final.
func (r *results) read(ctx context.Context, names []string) error {
	names = slices.DeleteFunc(names, func(name string) bool { return !r.unread(name) })
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
		result, err := Summary(ctx, r.src, name)
		if err != nil || !Telling(result) {
			return result, err
		}
	}
	return bounded.Call(ctx, func(ctx context.Context) (multilock.Result, error) { return r.src.Result(ctx, name) })
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

// unread says whether a result may tell of a job whose final result is still to come.
func (r *results) unread(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, chunk := ParseChunkName(name)
	return !r.settled[name] && (r.members == nil || chunk || r.missing[name])
}

// awaited says whether a final result is still to come of the job, or the chunk, that runs
// under a lock. Which members are in a chunk is not known.
func (r *results) awaited(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, chunk := ParseChunkName(name); r.members != nil && !chunk {
		return r.missing[name]
	}
	return !r.settled[name] && (r.members == nil || len(r.missing) > 0)
}

// note keeps what a result tells, in the place of what it told before.
func (r *results) note(name string, result multilock.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, before := r.tally(name, result), r.told[name]
	r.all.done += now.done - before.done
	r.all.final += now.final - before.final
	r.told[name] = now
	r.settled[name] = result.Final || result.Foreign != "" || result.Chunk == nil && result.OK()
	if r.settled[name] && len(now.failed)+len(now.incomplete) == 0 {
		delete(r.told, name)
	}
}

// tally tells a result's jobs apart. One that may be tried once more is not done, and one
// whose record nobody can read is not known to have succeeded. The caller holds the mutex.
func (r *results) tally(name string, result multilock.Result) (t tally) {
	result.Name = name
	EachJob(result, func(name string, job multilock.Result) {
		switch {
		case r.members != nil && !r.members[name] && job.Foreign == "":
			return
		case job.OK():
			if t.done++; job.Output != "" {
				t.incomplete = append(t.incomplete, job)
			}
		case job.Final, job.Foreign != "":
			t.failed = append(t.failed, job)
		default:
			return
		}
		delete(r.missing, name)
	})
	t.final = t.done + len(t.failed)
	switch chunk, ok := ParseChunkName(name); {
	case result.Chunk != nil && r.members == nil: // its jobs may not have been read
		t.done, t.final = result.Chunk.Done, result.Chunk.Done+result.Chunk.Failed
	case ok && result.Foreign != "": // whatever its jobs are called
		t.final += chunk.To - chunk.From
	}
	return t
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
