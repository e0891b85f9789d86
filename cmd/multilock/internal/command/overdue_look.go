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

// watcher judges the jobs of a group, or the named ones.
type watcher struct {
	src      *place.Source
	names    []string // empty: all jobs with a result
	expected lockgroup.Expectation
	list     *survey.List // counts the results for the list's progress; may be nil

	chunks   []string // names of results of chunks, which are not read
	jobs     []show.OverdueJob
	ownClock bool // this host's clock was used, because the source's could not be read
	done     int  // unnamed --once jobs that have succeeded

	mu      sync.Mutex // guards done and missing while results are read
	missing []string   // descriptions of what could not be read
	// held are the locks of jobs whose first run has not ended, by name.
	held map[string]multilock.Observation
}

// misses records what could not be read.
func (w *watcher) misses(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.missing = append(w.missing, console.Harmless(fmt.Sprintf(format, args...)))
}

// look reads the results and the time, and inspects the locks of the jobs that have a problem.
func (w *watcher) look(ctx context.Context) error {
	// Before the results: a job that is in neither has not started.
	held, err := bounded.Call(ctx, w.src.Locks.Names)
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

// judge judges a job by its last result, or by the lock of its first run. A job of --once may run for any
// time, so it has failed only if its holder is dead. A single inspection cannot decide that for a holder
// without heartbeats.
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
		s.State, s.Why = lockgroup.JobRetry, "its first run died; the next host that tries runs it again"
	case first.State != multilock.StateHeld:
		s.State, s.Why = lockgroup.JobUnknown, "its first run has sent no heartbeat: it died, or its host is cut off; \"multilock break\" finds out"
	}
	return s
}

// toRead returns the names of the jobs, sorted. It leaves out chunks, which are parts of a batch's list.
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

// addFirst adds the jobs whose first run has not ended: they are held, have no result, and their locks record
// how often they run. A job that is free by now has a result, or is dropped later.
func (w *watcher) addFirst(ctx context.Context, names, held []string) []string {
	all := len(w.names) == 0
	held = slices.DeleteFunc(held, func(name string) bool {
		_, chunk := joblist.ParseChunkName(name)
		return chunk || slices.Contains(names, name) == all
	})
	seen := make([]multilock.Observation, len(held))
	show.InParallel(len(held), func(i int) {
		// If it fails, the lock counts as free.
		seen[i], _ = multilock.Inspect(ctx, w.src.Locks, held[i], multilock.StalePolicy{})
	})
	w.held = map[string]multilock.Observation{}
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

// read reads the results of the named jobs. It returns nil for a job without a result, and for a job that is
// only counted. A result that cannot be read is Foreign.
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
			w.done++ // a large group mostly has such jobs, so their results are not stored
			return
		}
		found[i] = &r
	})
	return found, ctx.Err()
}

// now reads the source's clock if a tick must be compared with it. That requires permission to write; without
// it, now returns this host's time.
func (w *watcher) now(ctx context.Context, results []*multilock.Result) time.Time {
	clock, ok := source.Ability[source.Timekeeper](w.src.Locks, source.TraitOneClock)
	if !ok || len(w.held) == 0 && !slices.ContainsFunc(results, func(r *multilock.Result) bool { return r != nil && !r.Tick.IsZero() }) {
		return time.Now()
	}
	now, err := bounded.Change(ctx, clock.Now)
	w.ownClock = err != nil
	if w.ownClock && !errors.Is(err, fs.ErrPermission) {
		w.misses("the clock of the file server cannot be read, this host's clock is used: %v", err)
	}
	if w.ownClock {
		return time.Now()
	}
	return now
}

// recall reads the history for jobs that are expected, and whose results have no recent success: jobs that
// run without --every have no result.
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

// memory is the period of the history to read: twice the expected period, and at least a week, so that a late
// job is known to have run at all.
func (w *watcher) memory() time.Duration {
	const week = 7 * 24 * time.Hour
	return max(2*(w.expected.Every+w.expected.Within), week)
}

func unlikeWell(s lockgroup.JobStatus) bool { return s.State != lockgroup.JobWell }

// jobNamed returns the name of the job that runs under a lock, which may be the lock of a slot or a reader.
func jobNamed(lock string) string {
	if name, _, slotted := lockgroup.ParseSlotName(lock); slotted {
		return name
	}
	if name, _, reads := multilock.ParseReaderName(lock); reads {
		return name
	}
	return lock
}

// tell inspects the locks of the jobs, and adds the jobs to the report.
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

// findLogs finds the output of critical jobs.
func (w *watcher) findLogs(ctx context.Context) {
	show.InParallel(len(w.jobs), func(i int) {
		job := &w.jobs[i]
		if job.Severity != show.SeverityCritical {
			return
		}
		kept, err := bounded.Call(ctx, func(context.Context) (bool, error) { return hasCaptured(w.src, job.Name) })
		if err == nil && kept {
			job.Log = w.src.Place.Printed(job.Name)
		}
	})
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
