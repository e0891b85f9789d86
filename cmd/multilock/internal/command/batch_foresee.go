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

// foreseeBatch says what would become of each job. It changes nothing.
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
	f := foresight{plan: lockgroup.Plan{Retries: o.retries.Value}, at: make(map[string]int, len(list)), verdicts: make([]string, len(list)), returned: map[string][]source.Range{}}
	for i, job := range list {
		f.at[job.Name] = i
	}
	show.InParallel(len(names), func(i int) { f.recorded(ctx, ledger, names[i]) })
	held, err := src.Locks.Names(ctx)
	if err != nil {
		return err
	}
	for _, l := range show.Inspect(ctx, src, held, multilock.StalePolicy{MaxAge: o.maxAge.Value}) {
		if l.State != multilock.StateFree.String() {
			f.held(l)
		}
	}
	var table show.Table
	for i, job := range list {
		table.Row(console.Label(job.Name), cmp.Or(f.verdicts[i], "would run"), job.Shown)
		if slices.Contains(all.barriers, i+1) {
			table.Row(barrierLine, "-", "what is above is done before anything below begins")
		}
	}
	return table.Print(e.Env)
}

// foresight is what is known of the jobs of a list.
type foresight struct {
	plan lockgroup.Plan
	at   map[string]int // where a job is in the list

	mu       sync.Mutex
	verdicts []string                  // "" of a job that would run
	returned map[string][]source.Range // what was given back of chunks
}

// recorded takes a result into account, and of a chunk those of its jobs. What cannot be read
// is not run again.
func (f *foresight) recorded(ctx context.Context, ledger source.Ledger, name string) {
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
		f.each(chunk, f.verdict(r))
		return
	}
	if r.Chunk != nil {
		f.returned[name] = r.Chunk.Returned
	}
	joblist.EachJob(r, func(name string, job multilock.Result) {
		if i, ok := f.at[name]; ok {
			f.verdicts[i] = f.verdict(job)
		}
	})
}

// held takes a lock into account. What was given back of a chunk is not under its lock.
func (f *foresight) held(l show.Lock) {
	by := "held by " + l.Host
	if i, ok := f.at[l.Name]; ok {
		f.verdicts[i] = by
	}
	if l.Chunk != nil {
		f.each(source.Range{From: l.Chunk.From, To: l.Chunk.To}, by, f.returned[l.Name]...)
	}
}

// each is for the jobs of a chunk of which nothing is known, but for some of them.
func (f *foresight) each(chunk source.Range, verdict string, without ...source.Range) {
	for n := max(chunk.From, 1); n <= min(chunk.To, len(f.verdicts)); n++ {
		if !slices.ContainsFunc(without, func(r source.Range) bool { return r.From <= n && n <= r.To }) {
			f.verdicts[n-1] = cmp.Or(f.verdicts[n-1], verdict)
		}
	}
}

// verdict is what a result means for a batch.
func (f *foresight) verdict(r multilock.Result) string {
	v := show.ResultOf(r)
	switch {
	case v.State == show.ResultDone:
		return "done"
	case v.State == show.ResultRetry && v.Attempt <= f.plan.Retries:
		return fmt.Sprintf("would run again, attempt %d", v.Attempt+1)
	case v.State == show.StateUnknown:
		return "unknown result"
	}
	return fmt.Sprintf("failed (exit %s on %s)", v.ExitCell(), v.Host)
}
