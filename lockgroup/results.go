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

// results is what is known of the results that a barrier waits for. A result that
// is final is read once.
type results struct {
	src     source.Changes
	members map[string]bool // nil: any names

	// Only the polling goroutine uses these.
	revision string
	seen     bool
	again    time.Time // when the results have to be listed once more, though their revision is the same
	rest     time.Time // not before then: listing a large group often would be all that happens

	mu         sync.Mutex
	done       map[string]bool
	incomplete map[string]multilock.Result // of those that are done
	failed     map[string]multilock.Result
}

const (
	// sameStamp is the time within which two changes can leave the same stamp.
	sameStamp = 2 * time.Second
	// leisure is how many times as long as it took to list the results they are left alone.
	leisure = 20
	maxRest = 10 * time.Second
)

func newResults(src source.Changes, members []string) *results {
	r := &results{src: src, done: map[string]bool{}, incomplete: map[string]multilock.Result{}, failed: map[string]multilock.Result{}}
	if len(members) > 0 {
		r.members = map[string]bool{}
	}
	for _, name := range members {
		r.members[name] = true
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
	names = slices.DeleteFunc(names, func(name string) bool { return !r.awaited(name) })
	return EachResult(ctx, r.src, names, r.note)
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

// awaited says whether a name's final result is still to come.
func (r *results) awaited(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.members != nil && !r.members[name] {
		return false
	}
	_, failed := r.failed[name]
	return !failed && !r.done[name]
}

// note keeps a result if it is final. A job that may be tried once more is not
// done, and one whose record nobody can read is not known to have succeeded.
func (r *results) note(name string, result multilock.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case result.OK():
		r.done[name] = true
		if result.Name = name; result.Output != "" {
			r.incomplete[name] = result
		}
	case result.Final, result.Foreign != "":
		result.Name = name
		r.failed[name] = result
	}
}

func (r *results) wanted() int { return len(r.members) }

// count is how many names have a final result.
func (r *results) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.done) + len(r.failed)
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
