package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/show"
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
	f := prediction{plan: lockgroup.Plan{Retries: o.retries.Value, RetryOn: o.retryOn}, at: make(map[string]int, len(list)), outcomes: make([]string, len(list)), returned: map[string][]source.Range{}}
	for i, job := range list {
		f.at[job.Name] = i
	}
	show.InParallel(len(names), func(i int) { f.recorded(ctx, ledger, names[i]) })
	held, err := src.Locks.Names(ctx)
	if err != nil {
		return err
	}
	for _, l := range show.Inspect(ctx, src, held, multilock.StalePolicy{MaxAge: o.MaxAge.Value}) {
		if l.State != multilock.StateFree.String() {
			f.held(l)
		}
	}
	var table show.Table
	for i, job := range list {
		table.Row(console.Label(job.Name), cmp.Or(f.outcomes[i], "would run"), job.Shown)
		if slices.Contains(all.barriers, i+1) {
			table.Row(barrierLine, "-", "what is above is done before anything below begins")
		}
	}
	return table.Print(e.Env)
}

// prediction predicts what happens to the jobs of a list.
type prediction struct {
	plan lockgroup.Plan
	at   map[string]int // a job's index in the list

	mu       sync.Mutex
	outcomes []string                  // "" for a job that would run
	returned map[string][]source.Range // jobs that a chunk's holder returned
}

// recorded applies a result, and those of a chunk's jobs. Jobs with unreadable results do not run again.
func (f *prediction) recorded(ctx context.Context, ledger source.Ledger, name string) {
	r, err := ledger.Result(ctx, name)
	if errors.Is(err, multilock.ErrNoResult) {
		return
	}
	if err != nil {
		r = multilock.Result{Foreign: err.Error()}
	}
	r.Name = name
	f.mu.Lock()
	defer f.mu.Unlock()
	if chunk, ok := joblist.ParseChunkName(name); ok && r.Chunk == nil {
		f.each(chunk, f.outcome(r))
		return
	}
	if r.Chunk != nil {
		f.returned[name] = r.Chunk.Returned
	}
	joblist.EachJob(r, func(name string, job multilock.Result) {
		if i, ok := f.at[name]; ok {
			f.outcomes[i] = f.outcome(job)
		}
	})
}

// held applies a lock. It does not cover the jobs that were returned from the chunk.
func (f *prediction) held(l show.Lock) {
	by := "held by " + l.Host
	if i, ok := f.at[l.Name]; ok {
		f.outcomes[i] = by
	}
	if l.Chunk != nil {
		f.each(source.Range{From: l.Chunk.From, To: l.Chunk.To}, by, f.returned[l.Name]...)
	}
}

// each sets the outcome of a chunk's jobs that have none, except those in without.
func (f *prediction) each(chunk source.Range, outcome string, without ...source.Range) {
	for n := max(chunk.From, 1); n <= min(chunk.To, len(f.outcomes)); n++ {
		if !slices.ContainsFunc(without, func(r source.Range) bool { return r.From <= n && n <= r.To }) {
			f.outcomes[n-1] = cmp.Or(f.outcomes[n-1], outcome)
		}
	}
}

// outcome says what the batch would do after a result.
func (f *prediction) outcome(r multilock.Result) string {
	v := show.ResultOf(r)
	switch {
	case v.State == show.ResultDone:
		return "done"
	case v.State == show.ResultRetry && f.plan.Again(r).Step == lockgroup.StepRun:
		return fmt.Sprintf("would run again, attempt %d", v.Attempt+1)
	case v.State == show.StateUnknown:
		return "unknown result"
	}
	return fmt.Sprintf("failed (exit %s on %s)", v.ExitCell(), v.Host)
}
