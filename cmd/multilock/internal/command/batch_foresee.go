package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/cmd/multilock/internal/survey"
	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// foreseeBatch prints what the batch would do with each job. It changes nothing.
func foreseeBatch(ctx context.Context, e *Env, src *place.Source, o *batchOptions, all batchList) error {
	list := all.jobs
	ledger, err := place.Ability[source.Ledger](src, "batch", source.TraitResults)
	if err != nil {
		return err
	}
	names, err := ledger.Results(ctx)
	if err != nil {
		return err
	}
	f := prediction{plan: lockgroup.Plan{Retries: o.retries.Value, RetryOn: o.retryOn}, at: make(map[string]int, len(list)), placed: map[int]int{}, outcomes: make([]string, len(list)), returned: map[string][]source.Range{}}
	for i, job := range list {
		f.at[job.Name] = i
	}
	if err := f.placeJobs(ctx, src); err != nil {
		return err
	}
	survey.Results(ctx, ledger, names, nil, func(_ int, r multilock.Result) { f.recorded(r) })
	held, err := src.Locks.Names(ctx)
	if err != nil {
		return err
	}
	for _, l := range show.Inspect(ctx, src, held, multilock.StalePolicy{MaxAge: o.MaxAge.Value}) {
		if l.State != multilock.StateFree.String() {
			f.held(l)
		}
	}
	var removed []string
	if o.replace {
		changes, err := f.foreseeChanges(ctx, e, src, o, all)
		if err != nil {
			return err
		}
		removed = changes.Removed
	}
	var table show.Table
	for i, job := range list {
		table.Row(console.Label(job.Name), cmp.Or(f.outcomes[i], "would run"), job.Shown)
		if slices.Contains(all.barriers, i+1) {
			table.Row(barrierLine, "-", "the jobs above are done before any job below begins")
		}
	}
	for _, name := range removed {
		table.Row(console.Label(name), "would be removed", "")
	}
	return table.Print(e.Env)
}

// prediction predicts what happens to the jobs of a list.
type prediction struct {
	plan lockgroup.Plan
	at   map[string]int // a job's index in the list
	// placed maps numbers of the group's list to indexes, up to the number last.
	placed map[int]int
	last   int

	mu       sync.Mutex
	outcomes []string                  // "" for a job that would run
	returned map[string][]source.Range // jobs that a chunk's holder returned
}

// placeJobs reads the numbers that the jobs have in the group's list.
func (f *prediction) placeJobs(ctx context.Context, src *place.Source) error {
	manifests, ok := src.Locks.(source.ManifestStore)
	if !ok {
		return nil
	}
	return joblist.Each(ctx, manifests, func(j joblist.Job) bool {
		f.last = j.Number
		if i, ok := f.at[j.Name()]; ok {
			f.placed[j.Number] = i
		}
		return true
	})
}

// recorded applies a result, and those of a chunk's jobs. Jobs with unreadable results do not run again.
func (f *prediction) recorded(r multilock.Result) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if chunk, ok := joblist.ParseChunkName(r.Name); ok && r.Chunk == nil {
		f.each(chunk, f.outcome(r))
		return
	}
	if r.Chunk != nil {
		f.returned[r.Name] = r.Chunk.Returned
	}
	joblist.EachJob(r, func(name string, job multilock.Result) {
		if i, ok := f.at[name]; ok {
			f.outcomes[i] = f.outcome(job)
		}
	})
}

// held applies a lock. It does not cover the jobs that were returned from the chunk.
func (f *prediction) held(l show.Lock) {
	by := outcomeHeld + l.Host
	if i, ok := f.at[l.Name]; ok {
		f.outcomes[i] = by
	}
	if l.Chunk != nil {
		f.each(source.Range{From: l.Chunk.From, To: l.Chunk.To}, by, f.returned[l.Name]...)
	}
}

// each sets the outcome of a chunk's jobs that have none, except those in without.
func (f *prediction) each(chunk source.Range, outcome string, without ...source.Range) {
	for n := chunk.From; n <= min(chunk.To, f.last); n++ {
		i, ok := f.placed[n]
		if ok && !slices.ContainsFunc(without, func(r source.Range) bool { return r.From <= n && n <= r.To }) {
			f.outcomes[i] = cmp.Or(f.outcomes[i], outcome)
		}
	}
}

const (
	outcomeDone = "done"
	outcomeHeld = "held by " // followed by the host
)

// outcome describes what the batch would do, given a job's result.
func (f *prediction) outcome(r multilock.Result) string {
	v := show.ResultOf(r)
	switch {
	case v.State == show.ResultDone:
		return outcomeDone
	case v.State == show.ResultRetry && f.plan.Again(r).Step == lockgroup.StepRun:
		return fmt.Sprintf("would run again, attempt %d", v.Attempt+1)
	case v.State == show.StateUnknown:
		return "unknown result"
	}
	return fmt.Sprintf("failed (exit %s on %s)", v.ExitCell(), v.Host)
}
