package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/cmd/multilock/internal/survey"
	"github.com/multilock/go/cmd/multilock/report"
	"github.com/multilock/go/internal/budget"
	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// Remarks on the page about incomplete sources.
const (
	noHistory = "this source keeps no history: only the last result of each job is shown, and what is held now"
	noResults = "this source keeps no results: how a job ended is known from the history alone"
	noNames   = "this source cannot list what is held now"
)

// readReport reads the history, then the held locks, then the results. A job that ends meanwhile
// appears in the later of two, and report.Build merges them.
func readReport(ctx context.Context, src multilock.Source, since time.Time) (report.Input, error) {
	var in report.Input
	ctx = budget.Once(ctx)
	for _, one := range []struct {
		read    func(context.Context, multilock.Source, time.Time, *report.Input) error
		missing string
	}{{readHistory, noHistory}, {readHeld, noNames}, {readEnds, ""}, {readRecorded, noResults}} {
		err := one.read(ctx, src, since, &in)
		switch {
		case err == nil:
		case errors.Is(err, fs.ErrPermission):
			in.Missing = append(in.Missing, console.Line(err.Error()))
		case !errors.Is(err, multilock.ErrUnsupported):
			return in, err
		case one.missing != "":
			in.Missing = append(in.Missing, one.missing)
		}
	}
	return in, nil
}

// readHistory reads the last events that fit into memory.
func readHistory(ctx context.Context, src multilock.Source, since time.Time, in *report.Input) error {
	chronicle, ok := src.(source.Journal)
	if !ok {
		return multilock.ErrUnsupported
	}
	var last latest
	for e, err := range reportLeftOut(chronicle.History(ctx, since), func(what string) { in.Missing = append(in.Missing, what) }) {
		if err != nil {
			return err
		}
		if e.Chunk == nil { // the results of chunks have the details
			last.add(e)
		}
	}
	if last.over > 0 {
		in.Missing = append(in.Missing, fmt.Sprintf("the history before %s is left out: there is more than a page can show; make it of less with --since", last.events()[0].Time.Local().Format(time.DateTime)))
	}
	in.Events = last.events()
	for i := range in.Events { // hosts record their own time zones
		in.Events[i].Time = in.Events[i].Time.UTC()
	}
	return nil
}

// readHeld inspects the held locks, and reports those that it cannot inspect as missing.
func readHeld(ctx context.Context, src multilock.Source, _ time.Time, in *report.Input) error {
	names, err := src.Names(ctx)
	if err != nil {
		return err
	}
	seen := make([]multilock.Observation, len(names))
	errs := make([]error, len(names))
	show.InParallel(len(names), func(i int) { seen[i], errs[i] = multilock.Inspect(ctx, src, names[i], multilock.StalePolicy{}) })
	for i, name := range names {
		switch {
		case errs[i] != nil:
			in.Missing = append(in.Missing, fmt.Sprintf("lock %q could not be looked at: %v", name, errs[i]))
		case seen[i].State != multilock.StateFree && !seen[i].Orphan:
			in.Held = append(in.Held, lockgroup.Holding{Name: name, Observation: seen[i]})
		}
	}
	return nil
}

// readEnds reads the history again if it shows a lock as held that the inspection found free, and
// adds the ends of those acquisitions.
func readEnds(ctx context.Context, src multilock.Source, since time.Time, in *report.Input) error {
	open := report.Unended(in.Events)
	for _, h := range in.Held {
		delete(open, [2]string{h.Name, h.Observation.Record.Token})
	}
	if len(open) == 0 {
		return nil
	}
	chronicle := src.(source.Journal) // otherwise nothing would be open
	for e, err := range reportLeftOut(chronicle.History(ctx, since), func(string) {}) {
		if err != nil {
			return err
		}
		if open[[2]string{e.Name, e.Token}] && report.Ends(e) {
			e.Time = e.Time.UTC()
			in.Events = append(in.Events, e)
		}
	}
	return nil
}

// readRecorded reads the results, except successes that the history already shows, which most results are.
func readRecorded(ctx context.Context, src multilock.Source, since time.Time, in *report.Input) error {
	ledger, ok := src.(source.Ledger)
	if !ok {
		return multilock.ErrUnsupported
	}
	names, err := ledger.Results(ctx)
	if err != nil {
		return err
	}
	in.Recorded = map[string]bool{}
	unread, singles := unreadOf(names, in)
	found := make([]*multilock.Result, len(unread))
	shown, brief := shownOf(in), singles > maxListed
	list, err := survey.OpenList(ctx, src)
	if err != nil {
		in.Missing = append(in.Missing, console.Line(err.Error()))
	}
	for _, h := range in.Held {
		if h.Observation.State != multilock.StateDead {
			list.Held(h.Name, h.Observation.Age)
		}
	}
	var unlisted, troubled atomic.Int64
	in.Timing = &report.Timing{}
	chunks := keptChunks{timing: in.Timing, since: since}
	survey.Results(ctx, ledger, unread, nil, func(i int, r multilock.Result) {
		list.Result(r)
		switch {
		case r.Foreign == "" && r.Start.Add(r.Duration).Before(since):
		case brief && r.Chunk == nil && r.OK() && r.Output == "" && !shown[r.Name]:
			unlisted.Add(1)
			in.Timing.Add(r)
		case brief && r.Chunk == nil && !shown[r.Name] && troubled.Add(1) > maxTroubled:
		default:
			found[i] = &r
			chunks.keep(&r)
		}
	})
	in.List = list
	if in.Unlisted = int(unlisted.Load()); in.Unlisted > 0 {
		in.Missing = append(in.Missing, fmt.Sprintf("there are too many jobs to list each: %d that are done are only counted", in.Unlisted))
	}
	if left := troubled.Load() - maxTroubled; left > 0 {
		in.Missing = append(in.Missing, fmt.Sprintf("%d jobs that have failed, or whose results cannot be read, are left out: only %d of them are shown; multilock status --results names all", left, maxTroubled))
	}
	if chunks.jobs > maxListed {
		in.Missing = append(in.Missing, "there are too many jobs to list each: those that are done are shown by the parts of the list in which they ran")
	}
	commands := survey.Commands{}
	for _, r := range found {
		if r != nil {
			commands.Want(r.Chunk)
		}
	}
	commands.Read(ctx, ledger)
	for _, r := range found {
		if r != nil {
			r.Start = r.Start.UTC()
			in.Results = append(in.Results, *r)
			in.Recorded[r.Name] = true
		}
	}
	return ctx.Err()
}

// keptChunks bounds how many jobs of chunks are held in memory: if there are more than maxListed, only those
// with more than a plain success.
type keptChunks struct {
	timing *report.Timing
	since  time.Time

	mu    sync.Mutex
	jobs  int
	whole []*multilock.Result // chunks with all their jobs
}

func (k *keptChunks) keep(r *multilock.Result) {
	if r.Chunk == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.jobs += len(r.Chunk.Jobs)
	k.whole = append(k.whole, r)
	if k.jobs > maxListed {
		for _, one := range k.whole {
			k.trim(one)
		}
		k.whole = nil
	}
}

// trim drops the successful jobs from a chunk's result, except for their times.
func (k *keptChunks) trim(r *multilock.Result) {
	var rest []source.ChunkJob // a new array releases the memory of the others
	for _, j := range r.Chunk.Jobs {
		if j.Exit != 0 || j.Signal != "" || j.Output != "" {
			rest = append(rest, j)
		} else if one := j.Result(*r); !one.Start.Add(one.Duration).Before(k.since) {
			k.timing.Add(one)
		}
	}
	r.Chunk.Jobs = rest
}

// unreadOf returns the names of the results to read, and how many of them are not chunks. It marks
// the other results as recorded.
func unreadOf(names []string, in *report.Input) (unread []string, singles int) {
	successes := successesIn(in.Events)
	for _, name := range names {
		_, chunk := joblist.ParseChunkName(name)
		if successes[name] && !chunk {
			in.Recorded[name] = true
			continue
		}
		if unread = append(unread, name); !chunk {
			singles++
		}
	}
	return unread, singles
}

// successesIn returns the names whose events in a history are all successes. Their current result is a
// success, too: a failure can follow a success only after the result was deleted.
func successesIn(events []source.Event) map[string]bool {
	successes := map[string]bool{}
	for _, e := range events {
		switch before, met := successes[e.Name]; e.What {
		case source.EventForgot:
			successes[e.Name] = false
		case source.EventCommitted: // a recurring job's schedule is only in its result
			successes[e.Name] = (before || !met) && e.OK() && e.Tick.IsZero()
		}
	}
	return successes
}

// shownOf returns the jobs that are listed regardless of their results.
func shownOf(in *report.Input) map[string]bool {
	shown := map[string]bool{}
	for _, e := range in.Events {
		shown[e.Name] = true
	}
	for _, h := range in.Held {
		shown[h.Name] = true
	}
	return shown
}

// maxListed bounds how many jobs are listed individually, in chunks and outside of them. Larger
// pages are slow to open.
const maxListed = 20_000

// maxTroubled bounds how many unsuccessful jobs are listed if there are more than maxListed jobs.
const maxTroubled = 50_000
