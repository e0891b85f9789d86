package command

import (
	"context"
	"errors"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/options"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/internal/parallel"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

type cleanOptions struct {
	common
	maxAge  console.Duration
	dryRun  bool
	results bool
	history bool
	// failedOnly leaves all results alone but those of jobs that have failed for good.
	failedOnly bool
	keep       console.Duration
}

// cleanReport is what "clean --json" prints.
type cleanReport struct {
	DryRun    bool            `json:"dry_run"`
	Broken    []show.Lock     `json:"broken"`    // dead locks
	Held      []show.Lock     `json:"held"`      // left alone
	Tickets   []show.Lock     `json:"tickets"`   // of waiters (--fair) that are dead
	Leftovers []show.Leftover `json:"leftovers"` // removed
	Strange   []show.Leftover `json:"strange"`   // left alone: nobody left them behind who contended for a lock
	Failed    []string        `json:"failed"`
}

// Clean clears dead locks and leftovers, or forgets results.
func Clean(e *Env) *cli.Command {
	o := &cleanOptions{}
	return &cli.Command{
		Name:      "clean",
		Usage:     "clear dead locks, or forget results or history",
		ArgsUsage: "[options] [--results [NAME...] | --history]",
		Description: `Clears dead locks and leftovers; or forgets results, so that jobs run again; or
removes old days of the history. What lives is left alone.

It breaks every lock of the group whose holder is dead, watching the silent ones for
as long as it takes to be sure, and removes what crashed contenders left behind: also
the tickets of those who died while they stood in line (--fair).
Living holders are left alone. Nobody needs this for correctness: whoever wants
a dead lock takes it. What lies among the leftovers and was not put there by
multilock is named, and never touched.

With --results it does something else: it forgets how the jobs of the NAMEs ended,
or of all, so that "run --once" runs them again. A result is only removed under the
lock of its name; those whose lock is held are left alone (exit code 121). With --failed only
results of jobs that have failed for good are forgotten.

With --history it removes from the group's history the days that ended longer ago than
--keep says, by the file server's clock. Whoever is the first of its host to write there
on a day does the same, with MULTILOCK_HISTORY_KEEP (90d; 0 keeps all for ever).`,
		Flags: e.Flags("clean", options.Values{
			"results": &o.results, "failed": &o.failedOnly, "history": &o.history, "keep": &o.keep, "dry-run": &o.dryRun, "max-age": &o.maxAge,
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
	report := cleanReport{DryRun: o.dryRun, Broken: []show.Lock{}, Held: []show.Lock{}, Tickets: []show.Lock{}, Leftovers: []show.Leftover{}, Strange: []show.Leftover{}, Failed: []string{}}
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

// foresee says what clear would do, as far as one look can tell.
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
	sweeper, ok := src.Locks.(source.Sweeper)
	if !ok {
		return failed
	}
	all, err := sweeper.Leftovers(ctx)
	r.sort(all)
	return errors.Join(failed, err)
}

// sort tells leftovers from what is strange; those of contenders at work are neither.
func (r *cleanReport) sort(found []source.Leftover) {
	for _, l := range show.LeftoversOf(found) {
		switch {
		case l.Dead:
			r.Leftovers = append(r.Leftovers, l)
		case l.Strange:
			r.Strange = append(r.Strange, l)
		}
	}
}

// warn names what is strange, a few of many.
func (r *cleanReport) warn(e *Env) {
	warnOf(e, len(r.Strange), func(i int) string { return "left " + console.Label(r.Strange[i].Entry) + " alone: " + r.Strange[i].Why })
}

// clear breaks the dead locks, all of them at a time because a silent one has to
// be watched, and removes the leftovers.
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
	sweeper, ok := src.Locks.(source.Sweeper)
	if !ok {
		return failed
	}
	swept, err := sweeper.Sweep(ctx)
	r.sort(swept)
	return errors.Join(failed, err)
}

// tidy removes what a crash left of a lock that nobody holds. It is in the way of
// barriers that have no right to remove it. The error is ErrFree if all went well.
func tidy(ctx context.Context, src *place.Source, name string) error {
	if group, ok := src.Locks.(source.Group); ok {
		if err := group.Tidy(ctx, name); err != nil {
			return err
		}
	}
	return multilock.ErrFree
}

func (r *cleanReport) add(name string, seen multilock.Sighting, err error) error {
	switch {
	case err == nil:
		r.Broken = append(r.Broken, show.LockOf(name, seen))
	case errors.Is(err, multilock.ErrHeld):
		r.Held = append(r.Held, show.LockOf(name, seen))
	case errors.Is(err, multilock.ErrFree):
	default:
		r.Failed = append(r.Failed, err.Error())
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
	for _, l := range r.Leftovers {
		if err := e.Print("%s leftover %s, %s old: %s\n", removed, console.Label(l.Entry), console.Short(l.Leftover.Age), console.Line(l.Why)); err != nil {
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
	if o.Quiet || len(r.Broken)+len(r.Tickets)+len(r.Leftovers) > 0 {
		return nil
	}
	return e.Print("nothing to clean\n")
}
