package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync/atomic"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/cmd/multilock/internal/survey"
	"github.com/multilock/go/cmd/multilock/report"
	"github.com/multilock/go/internal/budget"
	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// What the page says of sources that cannot tell everything.
const (
	noHistory = "this source keeps no history: only the last result of each job is shown, and what is held now"
	noResults = "this source keeps no results: how a job ended is known from the history alone"
	noNames   = "this source cannot list what is held now"
)

// readReport reads what a source can tell: its history, the locks that are held,
// and the results of jobs, in this order. What ends meanwhile is seen in the later
// of two, and report.Build knows that.
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

// readHistory reads as much as there is room for, the latest.
func readHistory(ctx context.Context, src multilock.Source, since time.Time, in *report.Input) error {
	chronicle, ok := src.(source.Chronicle)
	if !ok {
		return multilock.ErrUnsupported
	}
	var last latest
	for e, err := range toldOf(chronicle.History(ctx, since), func(what string) { in.Missing = append(in.Missing, what) }) {
		if err != nil {
			return err
		}
		if e.Chunk == nil { // the results of chunks tell more than these
			last.add(e)
		}
	}
	if last.over > 0 {
		in.Missing = append(in.Missing, fmt.Sprintf("the history before %s is left out: there is more than a page can show; make it of less with --since", last.events()[0].Time.Local().Format(time.DateTime)))
	}
	in.Events = last.events()
	for i := range in.Events { // hosts write their own zones
		in.Events[i].Time = in.Events[i].Time.UTC()
	}
	return nil
}

// readHeld looks at the locks that are held. One that cannot be looked at is missing.
func readHeld(ctx context.Context, src multilock.Source, _ time.Time, in *report.Input) error {
	names, err := src.Names(ctx)
	if err != nil {
		return err
	}
	seen := make([]multilock.Sighting, len(names))
	errs := make([]error, len(names))
	show.InParallel(len(names), func(i int) { seen[i], errs[i] = multilock.Inspect(ctx, src, names[i], multilock.StalePolicy{}) })
	for i, name := range names {
		switch {
		case errs[i] != nil:
			in.Missing = append(in.Missing, fmt.Sprintf("lock %q could not be looked at: %v", name, errs[i]))
		case seen[i].State != multilock.StateFree && !seen[i].Limbo:
			in.Held = append(in.Held, lockgroup.Holding{Name: name, Sighting: seen[i]})
		}
	}
	return nil
}

// readEnds reads the history again if somebody seems to hold a lock who did not any
// more at the look, and takes the ends of those from it.
func readEnds(ctx context.Context, src multilock.Source, since time.Time, in *report.Input) error {
	open := report.Unended(in.Events)
	for _, h := range in.Held {
		delete(open, [2]string{h.Name, h.Sighting.Record.Token})
	}
	if len(open) == 0 {
		return nil
	}
	chronicle := src.(source.Chronicle) // or nothing would be open
	for e, err := range toldOf(chronicle.History(ctx, since), func(string) {}) {
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

// readRecorded reads the results, but for those of which the history tells that they
// are successes: of many jobs most are.
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
	for name := range in.Recorded {
		list.Result(multilock.Result{Name: name, Final: true}) // a success, as the history says
	}
	for _, h := range in.Held {
		if h.Sighting.State != multilock.StateDead {
			list.Held(h.Name)
		}
	}
	var unlisted, troubled atomic.Int64
	survey.Results(ctx, ledger, unread, survey.Summaries, func(i int, r multilock.Result) {
		list.Result(r)
		switch {
		case r.Foreign == "" && r.Start.Add(r.Duration).Before(since):
		case brief && r.Chunk == nil && r.OK() && r.Output == "" && !shown[r.Name]:
			if !list.Has(r.Name) {
				unlisted.Add(1)
			}
		case brief && r.Chunk == nil && !shown[r.Name] && troubled.Add(1) > maxTroubled:
		default:
			found[i] = &r
		}
	})
	in.List = list
	if in.Unlisted = int(unlisted.Load()); in.Unlisted > 0 {
		in.Missing = append(in.Missing, fmt.Sprintf("there are too many jobs to list each: %d that are done are only counted", in.Unlisted))
	}
	if left := troubled.Load() - maxTroubled; left > 0 {
		in.Missing = append(in.Missing, fmt.Sprintf("%d jobs that have failed, or whose results cannot be read, are left out: only %d of them are shown; multilock status --results names all", left, maxTroubled))
	}
	each := jobsIn(found) <= maxListed
	if !each {
		in.Missing = append(in.Missing, "there are too many jobs to list each: those that are done are shown by the parts of the list in which they ran")
	}
	var chunks []string
	var at []int
	for i, r := range found {
		if r != nil && r.Chunk != nil && (each || joblist.Telling(*r)) {
			chunks, at = append(chunks, r.Name), append(at, i)
		}
	}
	survey.Results(ctx, ledger, chunks, func(multilock.Result) bool { return true }, func(i int, r multilock.Result) {
		if r.Chunk != nil { // else its summary has to do
			found[at[i]] = trimmed(r, each)
		}
	})
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

// trimmed is the result of a chunk with those of its jobs that are listed.
func trimmed(r multilock.Result, each bool) *multilock.Result {
	if !each {
		r.Chunk.Jobs = slices.DeleteFunc(r.Chunk.Jobs, func(j source.ChunkJob) bool { return j.Exit == 0 && j.Signal == "" && j.Output == "" })
		r.Chunk.Jobs = slices.Clone(r.Chunk.Jobs) // the others are let go
	}
	return &r
}

// unreadOf are the names of results that are to be read, and how many of them are not those
// of chunks. That the others are there is noted.
func unreadOf(names []string, in *report.Input) (unread []string, singles int) {
	told := lockgroup.Successes{}
	for _, e := range in.Events {
		told.Add(e)
	}
	for _, name := range names {
		_, chunk := joblist.ParseChunkName(name)
		if told[name] && !chunk {
			in.Recorded[name] = true
			continue
		}
		if unread = append(unread, name); !chunk {
			singles++
		}
	}
	return unread, singles
}

// shownOf are the jobs that are listed whatever their results say.
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

// maxListed is of how many jobs each is listed, of those in chunks and of the others. A page
// with more is slow to open.
const maxListed = 20_000

// maxTroubled is how many of the others that are not done are listed, if there are many.
const maxTroubled = 50_000

func jobsIn(results []*multilock.Result) (n int) {
	for _, r := range results {
		if r != nil && r.Chunk != nil {
			n += r.Chunk.Recorded
		}
	}
	return n
}

// findLogs finds the output of the jobs that somebody will want to look at.
func (o *reportOptions) findLogs(src *place.Source, t *report.Timeline) {
	where, stop, err := findOutput(src, o.logs)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		t.Missing = append(t.Missing, fmt.Sprintf("what the jobs have printed could not be looked at: %v", err))
		return
	}
	defer stop()
	show.InParallel(len(t.Jobs), func(i int) {
		if job := &t.Jobs[i]; job.Trouble() {
			job.Log = where(job.Name)
		}
	})
}
