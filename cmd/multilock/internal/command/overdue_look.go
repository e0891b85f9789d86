package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/cmd/multilock/internal/survey"
	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// watcher judges the jobs of a group, or those of some names.
type watcher struct {
	src      *place.Source
	names    []string // none: all that have a result
	expected lockgroup.Expectation
	list     *survey.List // takes the results into account; may be nil

	chunks   []string // the names of the results of chunks, which are not read
	jobs     []show.OverdueJob
	ownClock bool // this host's clock was used, since the source's could not be read
	done     int  // unnamed --once jobs that have succeeded

	mu      sync.Mutex // guards done and missing while results are read
	missing []string   // what could not be read, in words
	// held are the locks of jobs whose first run has not ended, by their names.
	held map[string]multilock.Sighting
}

// misses records what could not be read.
func (w *watcher) misses(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.missing = append(w.missing, console.Harmless(fmt.Sprintf(format, args...)))
}

// look reads the results and the time, and inspects the locks of the jobs with which something
// is wrong.
func (w *watcher) look(ctx context.Context) error {
	held, err := bounded.Call(ctx, w.src.Locks.Names) // before the results: a job in neither has not begun
	if err != nil {
		w.misses("which locks are held cannot be read: %v", err)
	}
	names, err := w.toRead(ctx)
	if err != nil {
		return err
	}
	names = w.addFirst(ctx, names, held)
	results, err := w.read(ctx, names)
	if err != nil {
		return err
	}
	names, results = w.dropUnknown(names, results)
	now := w.now(ctx, results)
	status := make([]lockgroup.JobStatus, len(names))
	for i, name := range names {
		status[i] = w.judge(now, name, results[i])
	}
	if err := w.recall(ctx, now, names, status); err != nil {
		return err
	}
	return w.tell(ctx, names, status)
}

// judge judges a job by its last result, or by the lock of its first run. A job that runs once
// and for all, for as long as it takes, has failed when its holder is dead; one look cannot tell
// whether a silent holder is.
func (w *watcher) judge(now time.Time, name string, last *multilock.Result) lockgroup.JobStatus {
	first := w.held[name]
	every := first.Record.Holder.Every
	if last != nil || every == "" {
		return w.expected.Judge(now, last)
	}
	s := w.expected.JudgeFirst(now, every, first.Age)
	switch {
	case every != source.EveryOnce || s.State == lockgroup.JobLate:
	case first.State == multilock.StateDead:
		s.State, s.Why = lockgroup.JobRetry, "its first run died; whoever comes next runs it again"
	case first.State != multilock.StateHeld:
		s.State, s.Why = lockgroup.JobUnknown, "its first run is silent: it died, or is cut off; \"multilock break\" finds out"
	}
	return s
}

// toRead are the names of the jobs, sorted. Chunks are parts of a batch's list, and left out.
func (w *watcher) toRead(ctx context.Context) ([]string, error) {
	if len(w.names) > 0 {
		return w.names, nil
	}
	ledger, err := place.Ability[source.Ledger](w.src, overdueName, source.TraitResults)
	if err != nil {
		return nil, err
	}
	names, err := bounded.Call(ctx, ledger.Results)
	return slices.DeleteFunc(names, func(name string) bool {
		_, chunk := joblist.ParseChunkName(name)
		if chunk && w.list != nil {
			w.chunks = append(w.chunks, name)
		}
		return chunk
	}), err
}

// addFirst adds the jobs whose first run has not ended: they are held and have no result, and
// their locks record how often they are to run. A job that is free by now has a result, or is
// dropped later.
func (w *watcher) addFirst(ctx context.Context, names, held []string) []string {
	all := len(w.names) == 0
	held = slices.DeleteFunc(held, func(name string) bool {
		_, chunk := joblist.ParseChunkName(name)
		return chunk || slices.Contains(names, name) == all
	})
	seen := make([]multilock.Sighting, len(held))
	show.InParallel(len(held), func(i int) {
		seen[i], _ = multilock.Inspect(ctx, w.src.Locks, held[i], multilock.StalePolicy{}) // on an error it counts as free
	})
	w.held = map[string]multilock.Sighting{}
	for i, name := range held {
		switch {
		case seen[i].State == multilock.StateFree:
		case seen[i].Record.Holder.Every == "":
			continue
		default:
			w.held[name] = seen[i]
		}
		if all {
			names = append(names, name)
		}
	}
	if all {
		slices.Sort(names)
	}
	return names
}

// dropUnknown drops unnamed jobs without data.
func (w *watcher) dropUnknown(names []string, results []*multilock.Result) (kept []string, of []*multilock.Result) {
	for i, name := range names {
		if _, first := w.held[name]; first || results[i] != nil || len(w.names) > 0 {
			kept, of = append(kept, name), append(of, results[i])
		}
	}
	return kept, of
}

// read reads the results of these names. It returns nil for a name without a result, and for a
// job that is only counted. A result that cannot be read is Foreign.
func (w *watcher) read(ctx context.Context, names []string) ([]*multilock.Result, error) {
	found := make([]*multilock.Result, len(names))
	ledger, ok := source.Ability[source.Ledger](w.src.Locks, source.TraitResults)
	if !ok {
		return found, nil
	}
	survey.Results(ctx, ledger, names, survey.Summaries, func(i int, r multilock.Result) {
		w.list.Result(r)
		if len(w.names) == 0 && w.expected.Every == 0 && r.OK() && r.Tick.IsZero() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.done++ // a large group mostly has such jobs, so their results are not kept
			return
		}
		found[i] = &r
	})
	return found, ctx.Err()
}

// now reads the source's clock if a tick has to be judged by it. Reading it takes the right to
// write; without that right this host's clock is used.
func (w *watcher) now(ctx context.Context, results []*multilock.Result) time.Time {
	clock, ok := source.Ability[source.Timekeeper](w.src.Locks, source.TraitOneClock)
	if !ok || len(w.held) == 0 && !slices.ContainsFunc(results, func(r *multilock.Result) bool { return r != nil && !r.Tick.IsZero() }) {
		return time.Now()
	}
	now, err := bounded.Call(ctx, clock.Now)
	w.ownClock = err != nil
	if w.ownClock && !errors.Is(err, fs.ErrPermission) {
		w.misses("the clock of the file server cannot be read, this host's is believed: %v", err)
	}
	if w.ownClock {
		return time.Now()
	}
	return now
}

// recall reads the history for jobs that are expected, and whose results have no success in
// time: jobs that run without --every have no result.
func (w *watcher) recall(ctx context.Context, now time.Time, names []string, status []lockgroup.JobStatus) error {
	if w.expected.Every == 0 || !slices.ContainsFunc(status, unlikeWell) {
		return nil
	}
	chronicle, ok := source.Ability[source.Journal](w.src.Locks, source.TraitHistory)
	if !ok {
		return nil
	}
	last, told := map[string]time.Time{}, map[string]bool{}
	left := func(what string) { w.misses("%s", what) }
	for e, err := range reportLeftOut(chronicle.History(ctx, now.Add(-w.memory())), left) {
		if err != nil {
			return err
		}
		name := jobNamed(e.Name)
		told[name] = true
		if lockgroup.EndedWell(e) && e.Time.After(last[name]) {
			last[name] = e.Time
		}
	}
	for i, name := range names {
		if s := status[i]; unlikeWell(s) && last[name].After(s.Succeeded) || s.Last == nil && told[name] {
			status[i] = w.expected.JudgeEnd(now, last[name])
			status[i].Last = s.Last
		}
	}
	return nil
}

// memory is how much of the history is read: twice what is expected, and at least a week, so
// that a late job is known to have run at all.
func (w *watcher) memory() time.Duration {
	const week = 7 * 24 * time.Hour
	return max(2*(w.expected.Every+w.expected.Within), week)
}

func unlikeWell(s lockgroup.JobStatus) bool { return s.State != lockgroup.JobWell }

// jobNamed is the name of the job that runs under a lock, which may be that of a slot or of a
// reader.
func jobNamed(lock string) string {
	if name, _, slotted := lockgroup.ParseSlotName(lock); slotted {
		return name
	}
	if name, _, reads := multilock.ParseReaderName(lock); reads {
		return name
	}
	return lock
}

// tell inspects the locks of the jobs, and keeps what is to be shown.
func (w *watcher) tell(ctx context.Context, names []string, status []lockgroup.JobStatus) error {
	running := make([]*show.Lock, len(names))
	show.InParallel(len(names), func(i int) {
		if _, first := w.held[names[i]]; first || unlikeWell(status[i]) || len(w.names) > 0 {
			running[i] = w.holder(ctx, names[i])
		}
	})
	w.jobs = []show.OverdueJob{}
	for i, name := range names {
		s := status[i]
		w.jobs = append(w.jobs, show.OverdueOf(name, s, running[i]))
	}
	return ctx.Err()
}

// holder returns the live holder of the job's lock, nil if the lock is not held.
func (w *watcher) holder(ctx context.Context, name string) *show.Lock {
	seen, err := multilock.Inspect(ctx, w.src.Locks, name, multilock.StalePolicy{})
	if err != nil || seen.State != multilock.StateHeld {
		if err != nil && !errors.Is(err, multilock.ErrUnsupported) {
			w.misses("the lock %q could not be looked at: %v", name, err)
		}
		return nil
	}
	lock := show.LockOf(name, seen)
	return &lock
}
