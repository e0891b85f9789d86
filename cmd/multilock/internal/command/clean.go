package command

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/options"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/internal/parallel"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

type cleanOptions struct {
	common
	maxAge  console.Duration
	dryRun  bool
	results bool
	history bool
	// captured removes the output of runs.
	captured bool
	// failedOnly limits the deletion to the results of jobs that have failed permanently.
	failedOnly bool
	keep       console.Duration
}

// cleanReport is the output of "clean --json".
type cleanReport struct {
	DryRun  bool         `json:"dry_run"`
	Broken  []show.Lock  `json:"broken"`          // dead locks
	Held    []show.Lock  `json:"held"`            // not deleted
	Tickets []show.Lock  `json:"deleted_tickets"` // of dead waiters (--fair)
	Stale   []show.Entry `json:"stale_entries"`   // removed
	Unknown []show.Entry `json:"unknown_entries"` // not deleted: not multilock's
	Errors  []string     `json:"errors"`
}

// Clean clears dead locks and stale files, or deletes results, history or output.
func Clean(e *Env) *cli.Command {
	o := &cleanOptions{}
	return &cli.Command{
		Name:      "clean",
		Usage:     "clear dead locks, or delete results, history or output",
		ArgsUsage: "[options] [--results|--captured [NAME...]]",
		Description: `Clears dead locks and stale files; or deletes results, so that jobs run again; or
deletes old history, or the output of runs. Live holders are left alone.

   multilock -d /shared -g convert clean --dry-run
   multilock -d /shared -g convert clean --results --failed
   multilock -d /shared clean --history --keep 30d`,
		Flags: e.Flags("clean", options.Values{
			"results": &o.results, "failed": &o.failedOnly, "history": &o.history, "captured": &o.captured, "keep": &o.keep, "dry-run": &o.dryRun, "max-age": &o.maxAge,
		}),
		Action: action(e, &o.common, nil, func(ctx context.Context, src *place.Source) error { return o.run(ctx, e, src) }),
	}
}

func (o *cleanOptions) run(ctx context.Context, e *Env, src *place.Source) error {
	if o.results {
		return forgetResults(ctx, e, src, o)
	}
	if o.history {
		return o.shortenHistory(ctx, e, src)
	}
	if o.captured {
		return o.removeCaptured(ctx, e, src)
	}
	if err := src.Require("clean", source.TraitBreakByEvidence); err != nil {
		return err
	}
	sigs := console.CatchSignals()
	defer sigs.Release()
	ctx = sigs.Until(ctx)
	names, err := src.Locks.Names(ctx)
	if err != nil {
		return err
	}
	report := cleanReport{DryRun: o.dryRun, Broken: []show.Lock{}, Held: []show.Lock{}, Tickets: []show.Lock{}, Stale: []show.Entry{}, Unknown: []show.Entry{}, Errors: []string{}}
	var failed error
	if o.dryRun {
		failed = report.foresee(ctx, src, names, o)
	} else {
		failed = report.clear(ctx, src, names, o)
	}
	report.warn(e)
	if o.JSON {
		return errors.Join(failed, e.PrintJSON(report))
	}
	return errors.Join(failed, report.print(e, o))
}

// foresee predicts what clear would do, from a single inspection.
func (r *cleanReport) foresee(ctx context.Context, src *place.Source, names []string, o *cleanOptions) error {
	for _, l := range show.Inspect(ctx, src, names, multilock.StalePolicy{MaxAge: o.maxAge.Value}) {
		switch l.State {
		case multilock.StateDead.String(), multilock.StateSuspect.String():
			r.Broken = append(r.Broken, l)
		case multilock.StateHeld.String():
			r.Held = append(r.Held, l)
		}
	}
	failed := r.foreseeTickets(ctx, src)
	files, ok := src.Locks.(*fslock.Source)
	if !ok {
		return failed
	}
	all, err := files.Leftovers(ctx)
	r.sort(all)
	return errors.Join(failed, err)
}

// sort adds stale and unknown entries to the report. Entries of running contenders are neither.
func (r *cleanReport) sort(found []source.Leftover) {
	for _, l := range found {
		switch {
		case l.Dead:
			r.Stale = append(r.Stale, show.EntryOf(l))
		case l.Strange:
			r.Unknown = append(r.Unknown, show.EntryOf(l))
		}
	}
}

// warn lists a few of the unknown entries.
func (r *cleanReport) warn(e *Env) {
	warnOf(e, len(r.Unknown), func(i int) string { return "left " + console.Label(r.Unknown[i].Entry) + " alone: " + r.Unknown[i].Why })
}

// clear breaks the dead locks and removes the stale entries. It breaks in parallel, because a holder without
// heartbeats must be watched for a while.
func (r *cleanReport) clear(ctx context.Context, src *place.Source, names []string, o *cleanOptions) error {
	var mu sync.Mutex
	var failed error
	var group sync.WaitGroup
	want := multilock.BreakOptions{StalePolicy: multilock.StalePolicy{MaxAge: o.maxAge.Value}}
	slots := make(chan struct{}, 16*parallel.Requests)
	for _, name := range names {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			seen, err := multilock.Break(ctx, src.Locks, name, want)
			if errors.Is(err, multilock.ErrFree) {
				err = tidy(ctx, src, name)
			}
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, r.add(name, seen, err))
		})
	}
	group.Wait()
	failed = errors.Join(failed, r.clearTickets(ctx, src))
	files, ok := src.Locks.(*fslock.Source)
	if !ok {
		return failed
	}
	swept, err := files.Sweep(ctx)
	r.sort(swept)
	return errors.Join(failed, err)
}

// tidy removes the remains of a crash from a free lock. They would block barriers that lack the permission to
// remove them. It returns ErrFree on success.
func tidy(ctx context.Context, src *place.Source, name string) error {
	if group, ok := src.Locks.(source.Group); ok {
		if err := group.Tidy(ctx, name); err != nil {
			return err
		}
	}
	return multilock.ErrFree
}

func (r *cleanReport) add(name string, seen multilock.Observation, err error) error {
	switch {
	case err == nil:
		r.Broken = append(r.Broken, show.LockOf(name, seen))
	case errors.Is(err, multilock.ErrHeld):
		r.Held = append(r.Held, show.LockOf(name, seen))
	case errors.Is(err, multilock.ErrFree):
	default:
		r.Errors = append(r.Errors, err.Error())
		return err
	}
	return nil
}

func (r *cleanReport) print(e *Env, o *cleanOptions) error {
	broke, removed := "broke", "removed"
	if r.DryRun {
		broke, removed = "would break", "would remove"
	}
	for _, l := range r.Broken {
		if err := e.Print("%s lock %s: %s\n", broke, console.Label(l.Name), console.Line(l.Why)); err != nil {
			return err
		}
	}
	for _, l := range r.Tickets {
		if err := e.Print("%s the place of %s in the line for %s: %s\n", removed, console.Harmless(l.Holder()), console.Label(l.Queue), console.Line(l.Why)); err != nil {
			return err
		}
	}
	for _, l := range r.Stale {
		if err := e.Print("%s leftover %s, %s old: %s\n", removed, console.Label(l.Entry), console.Short(time.Duration(l.Age*float64(time.Second))), console.Line(l.Why)); err != nil {
			return err
		}
	}
	if o.Verbose {
		for _, l := range r.Held {
			if err := e.Print("left lock %s alone: %s\n", console.Label(l.Name), console.Line(l.Why)); err != nil {
				return err
			}
		}
	}
	if o.Quiet || len(r.Broken)+len(r.Tickets)+len(r.Stale) > 0 {
		return nil
	}
	return e.Print("nothing to clean\n")
}
