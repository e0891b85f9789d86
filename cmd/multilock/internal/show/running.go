package show

import (
	"cmp"
	"context"
	"slices"

	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/internal/redact"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// Running is a job of a list that runs under a chunk's lock. Jobs are recorded there after they have run for
// a second.
type Running struct {
	Name    string   `json:"name"`
	Number  int      `json:"number"`
	Attempt int      `json:"attempt"`
	Slot    int      `json:"slot"`
	Age     *float64 `json:"elapsed_seconds"`
	Command string   `json:"command,omitempty"`
}

// ReadRunning fills in the jobs that run under the locks of chunks. It ignores read errors, because the
// lock's state is known without the jobs.
func ReadRunning(ctx context.Context, locks multilock.Source, views []Lock) {
	InParallel(len(views), func(i int) { views[i].readRunning(ctx, locks) })
	named := map[int][]*Running{}
	last := 0
	for _, l := range views {
		for i := range l.Running {
			r := &l.Running[i]
			named[r.Number], last = append(named[r.Number], r), max(last, r.Number)
		}
	}
	manifests, ok := locks.(source.ManifestStore)
	if !ok || last == 0 {
		return
	}
	_ = joblist.Each(ctx, manifests, func(j joblist.Job) bool {
		for _, r := range named[j.Number] {
			r.Name, r.Command = j.Name(), redact.Line(j.Command())
		}
		return j.Number < last
	})
}

func (l *Lock) readRunning(ctx context.Context, locks multilock.Source) {
	chunk, ok := joblist.ParseChunkName(l.Name)
	if !ok || !l.Job {
		return
	}
	groups := l.groups
	if observer, ok := locks.(source.JobObserver); ok && len(groups) == 0 {
		groups, _ = observer.JobGroups(ctx, l.Name)
	}
	works := worksIn(groups, chunk)
	if len(works) == 0 {
		return
	}
	over := map[int]int{} // last recorded attempts; process groups may stay recorded for longer
	if ledger, ok := locks.(source.Ledger); ok {
		if r, err := ledger.Result(ctx, l.Name); err == nil && r.Chunk != nil {
			for _, job := range r.Chunk.Jobs {
				over[job.Number] = max(job.Result(r).Attempt, 1)
			}
		}
	}
	for _, w := range works {
		if w.Attempt <= over[w.Job] {
			continue
		}
		running := Running{Number: w.Job, Attempt: w.Attempt, Slot: w.Slot}
		if l.Age != nil {
			age := max(*l.Age-w.After, 0)
			running.Age = &age
		}
		l.Running = append(l.Running, running)
	}
}

// worksIn returns the last attempt in each slot, in order of the slots. A job may have several process
// groups.
func worksIn(groups []process.Group, chunk source.Range) (works []process.Work) {
	bySlot := map[int]process.Work{}
	for _, g := range groups {
		w := g.Work
		if w.Job >= chunk.From && w.Job <= chunk.To && w.Attempt > 0 && w.After >= bySlot[w.Slot].After {
			bySlot[w.Slot] = w
		}
	}
	for _, w := range bySlot {
		works = append(works, w)
	}
	slices.SortFunc(works, func(a, b process.Work) int { return cmp.Compare(a.Slot, b.Slot) })
	return works
}
