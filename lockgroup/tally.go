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

// tally is what is known of the results that a barrier waits for. A result that
// is final is read once.
type tally struct {
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
	// ticks is the time within which two changes can leave the same stamp.
	ticks = 2 * time.Second
	// leisure is how many times as long as it took to list the results they are left alone.
	leisure = 20
	maxRest = 10 * time.Second
)

func newTally(src source.Changes, members []string) *tally {
	t := &tally{src: src, done: map[string]bool{}, incomplete: map[string]multilock.Result{}, failed: map[string]multilock.Result{}}
	if len(members) > 0 {
		t.members = map[string]bool{}
	}
	for _, name := range members {
		t.members[name] = true
	}
	return t
}

// update asks for the results' revision, and reads what is new. It reports
// whether that brought any final result.
func (t *tally) update(ctx context.Context) (progress bool, err error) {
	revision, err := bounded.Call(ctx, t.src.Revision)
	if err != nil {
		return false, err
	}
	now := time.Now()
	changed := !t.seen || revision != t.revision
	due := changed || (!t.again.IsZero() && !now.Before(t.again))
	if !due || now.Before(t.rest) {
		return false, nil
	}
	before := t.count()
	names, err := bounded.Call(ctx, t.src.Results)
	listed := time.Since(now)
	if err == nil {
		err = t.read(ctx, names)
	}
	if err != nil {
		return false, err
	}
	t.again = time.Time{}
	if changed {
		t.again = now.Add(ticks)
	}
	t.revision, t.seen = revision, true
	t.rest = time.Now().Add(min(leisure*listed, maxRest))
	return t.count() > before, nil
}

// read reads those results that are not known to be final.
func (t *tally) read(ctx context.Context, names []string) error {
	names = slices.DeleteFunc(names, func(name string) bool { return !t.awaited(name) })
	return parallel.Do(parallel.Requests, len(names), func(i int) error {
		name := names[i]
		result, err := bounded.Call(ctx, func(ctx context.Context) (multilock.Result, error) { return t.src.Result(ctx, name) })
		if errors.Is(err, multilock.ErrNoResult) {
			return nil // forgotten meanwhile
		}
		if err == nil {
			t.note(name, result)
		}
		return err
	})
}

// awaited says whether a name's final result is still to come.
func (t *tally) awaited(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.members != nil && !t.members[name] {
		return false
	}
	_, failed := t.failed[name]
	return !failed && !t.done[name]
}

// note keeps a result if it is final. A job that may be tried once more is not
// done, and one whose record nobody can read is not known to have succeeded.
func (t *tally) note(name string, result multilock.Result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case result.OK():
		t.done[name] = true
		if result.Name = name; result.Output != "" {
			t.incomplete[name] = result
		}
	case result.Final, result.Foreign != "":
		result.Name = name
		t.failed[name] = result
	}
}

func (t *tally) wanted() int { return len(t.members) }

// count is how many names have a final result.
func (t *tally) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.done) + len(t.failed)
}
