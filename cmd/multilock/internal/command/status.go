package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

type statusOptions struct {
	common
	maxAge  console.Duration
	watch   bool
	every   console.Duration
	results bool
	names   []string
}

// statusReport is what "status --json" prints.
type statusReport struct {
	Base    string        `json:"base"`
	Group   string        `json:"group"`
	Locks   []show.Lock   `json:"locks"`
	Results *show.Results `json:"results"` // null for a source that keeps none
	// Missing says which results cannot be read, and why.
	Missing []string `json:"missing,omitempty"`

	where string // the source and its group, for people
}

// Status shows who holds what.
func Status(e *Env) *cli.Command {
	o := &statusOptions{}
	return &cli.Command{
		Name:      "status",
		Aliases:   []string{"ls"},
		Usage:     "show who holds what, and why that counts as alive",
		ArgsUsage: "[NAME...]",
		Description: `Lists the locks of the group that are held: by whom, for how long, the last sign
of life, and the verdict with its reason. STATE is
   held      by somebody who counts as alive
   suspect   silent for too long, or nobody can tell from here for how long;
             "multilock break NAME" watches it and, if it stays silent, clears
             it, and so does everybody who wants the lock
   dead      provably: whoever comes next takes it
   free      shown for a NAME that was asked for
   unknown   it could not be looked at; the exit code is 123 then
Below that it sums up the results that were recorded (run --once, run --every),
lists them all with --results, and shows those of the NAMEs that were asked for.
Looking changes nothing.`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "watch", Aliases: []string{"w"}, Destination: &o.watch, DisableDefaultText: true, Usage: "show it again and again, until interrupted"},
			&cli.BoolFlag{Name: "results", Aliases: []string{"r"}, Destination: &o.results, DisableDefaultText: true, Usage: "list every result that is recorded, not only their sum"},
			&cli.GenericFlag{Name: "every", Value: &o.every, Usage: "the `DURATION` between two looks of --watch (default: 2s)"},
			&cli.GenericFlag{Name: "max-age", Aliases: []string{"maxage"}, Value: &o.maxAge, Usage: "judge locks without a ttl of their own by this `DURATION` without a change"},
		},
		Action: action(e, &o.common, func(c *cli.Context) error { o.names = namesAsked(c); return nil },
			func(ctx context.Context, src *place.Source) error { return o.run(ctx, e, src) }),
	}
}

func (o *statusOptions) run(ctx context.Context, e *Env, src *place.Source) error {
	if err := o.check(src); err != nil {
		return err
	}
	if o.watch {
		return watchStatus(ctx, e, src, o)
	}
	report, err := o.look(ctx, src)
	if err != nil {
		return err
	}
	return errors.Join(report.show(e, o), report.unsure())
}

// check finds what cannot be asked of the source. Results are an extra, unless it is
// those that were asked for.
func (o *statusOptions) check(src *place.Source) error {
	if o.results {
		if _, err := place.Ability[source.Ledger](src, "status: --results", source.TraitResults); err != nil {
			return err
		}
	}
	return src.CheckNames(o.names)
}

// watchStatus goes on when a look fails: somebody who watches wants to see the
// file server come back, too.
func watchStatus(ctx context.Context, e *Env, src *place.Source, o *statusOptions) error {
	if !o.every.Given || o.every.Value == 0 {
		o.every.Value = 2 * time.Second
	}
	sigs := console.CatchSignals()
	defer sigs.Release()
	ctx = sigs.Until(ctx)
	for {
		report, err := o.look(ctx, src)
		if err != nil && ctx.Err() == nil {
			e.Say("%v", err)
		}
		if err == nil {
			if err := report.refresh(e, o); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(o.every.Value):
		}
	}
}

// look inspects the locks that were asked for, or all that are held.
func (o *statusOptions) look(ctx context.Context, src *place.Source) (statusReport, error) {
	report := statusReport{Base: src.Place.Public(), Group: src.Place.Group, Locks: []show.Lock{}, where: src.Where()}
	if len(o.names) > 0 {
		return report, o.lookAtNamed(ctx, src, &report)
	}
	names, err := src.Locks.Names(ctx)
	if errors.Is(err, multilock.ErrUnsupported) {
		return report, console.Usagef("status", "this source cannot list its locks; write: status NAME")
	}
	if err != nil {
		return report, err
	}
	for _, l := range show.Inspect(ctx, src, names, o.patience()) {
		if l.State != multilock.StateFree.String() {
			report.Locks = append(report.Locks, l)
		}
	}
	return report, o.lookAtResults(ctx, src, &report)
}

func (o *statusOptions) patience() multilock.Patience {
	return multilock.Patience{MaxAge: o.maxAge.Value}
}

// lookAtNamed is for names that were asked for. A job of a list may be run under the lock of a
// chunk, and have its result there.
func (o *statusOptions) lookAtNamed(ctx context.Context, src *place.Source, report *statusReport) error {
	placed, err := findJobs(ctx, src, o.names)
	if errors.Is(err, fs.ErrPermission) {
		report.Missing, err = append(report.Missing, console.Harmless(err.Error())), nil
	}
	if err != nil {
		return err
	}
	locks := slices.Clone(o.names)
	var alone []string
	var found []multilock.Result
	for i, name := range o.names {
		at, inChunk := placed[name]
		if !inChunk {
			alone = append(alone, name)
		}
		if at.Result != nil {
			found = append(found, *at.Result)
		}
		if at.Chunk.From > 0 && !at.Final() {
			locks[i] = lockgroup.ChunkName(at.Chunk)
		}
	}
	for i, l := range show.Inspect(ctx, src, locks, o.patience()) {
		if locks[i] != o.names[i] {
			l = l.For(o.names[i])
		}
		report.Locks = append(report.Locks, l)
	}
	ledger, ok := source.Ability[source.Ledger](src.Locks, source.TraitResults)
	if !ok {
		return nil
	}
	results := show.ReadResults(ctx, ledger, alone, true)
	results.Add(found)
	report.addResults(results)
	return nil
}

// findJobs finds the jobs that are claimed in chunks.
func findJobs(ctx context.Context, src *place.Source, names []string) (map[string]lockgroup.Placed, error) {
	ledger, ok := source.Ability[source.Chunks](src.Locks, source.TraitResults)
	if !ok {
		return nil, nil
	}
	held, err := src.Locks.Names(ctx)
	if err != nil {
		return nil, err
	}
	return lockgroup.FindInChunks(ctx, ledger, names, held)
}

func (o *statusOptions) lookAtResults(ctx context.Context, src *place.Source, report *statusReport) error {
	ledger, ok := source.Ability[source.Ledger](src.Locks, source.TraitResults)
	if !ok {
		return nil
	}
	names, err := ledger.Results(ctx)
	if errors.Is(err, fs.ErrPermission) && !o.results { // it was asked for the locks
		report.Missing = []string{console.Harmless(err.Error())}
		return nil
	}
	if err != nil {
		return err
	}
	report.addResults(show.ReadResults(ctx, ledger, names, show.KeepDone(o.results)))
	return nil
}

func (r *statusReport) addResults(results show.Results) {
	r.Results = &results
	for _, v := range results.List {
		if v.State == show.StateUnknown {
			r.Missing = append(r.Missing, fmt.Sprintf("how %s ended cannot be read: %s", show.Label(v.Name), console.Harmless(v.Why)))
		}
	}
}

// listsAll says whether every result is shown that is asked about.
func (o *statusOptions) listsAll() bool { return o.results || len(o.names) > 0 }

// refresh shows the report in the place of the one before.
func (r statusReport) refresh(e *Env, o *statusOptions) error {
	if console.IsTerminal(e.Stdout) && !o.JSON {
		if err := errors.Join(e.Clear(), e.Print("%s  every %s\n\n", time.Now().Format(time.TimeOnly), o.every.Value)); err != nil {
			return err
		}
	}
	return r.show(e, o)
}

func (r statusReport) show(e *Env, o *statusOptions) error {
	warnOf(e, len(r.Missing), func(i int) string { return r.Missing[i] })
	if o.JSON {
		return e.PrintJSON(r)
	}
	if err := printStatus(e, o, r); err != nil || r.Results == nil || r.Results.Total() == 0 {
		return err
	}
	return printResults(e, o, *r.Results)
}

func printResults(e *Env, o *statusOptions, r show.Results) error {
	if !o.listsAll() {
		if o.Quiet {
			return nil
		}
		return e.Print("%s\n", r.Summary())
	}
	if err := e.Print("\n"); err != nil {
		return err
	}
	return r.PrintTable(e.Env)
}

// maxWarnings is how many of many things are named.
const maxWarnings = 10

// warnOf warns of a few of many things, and of how many there are.
func warnOf(e *Env, n int, what func(i int) string) {
	for i := range min(n, maxWarnings) {
		e.Say("warning: %s", what(i))
	}
	if more := n - maxWarnings; more > 0 {
		e.Say("warning: and %d more of that kind; --json names them all", more)
	}
}

// unsure makes a script notice that the report does not tell everything.
func (r statusReport) unsure() error {
	var names []string
	for _, l := range r.Locks {
		if l.State == show.StateUnknown {
			names = append(names, console.Label(l.Name))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", multilock.ErrUnsure, strings.Join(names, ", "))
}

func printStatus(e *Env, o *statusOptions, report statusReport) error {
	if len(report.Locks) == 0 {
		if o.Quiet {
			return nil
		}
		return e.Print("nothing is held in %s\n", report.where)
	}
	var table show.Table
	table.Row("NAME", "STATE", "HOST", "PID", "USER", "HELD FOR", "LAST SIGN", "COMMAND", "WHY")
	for _, l := range report.Locks {
		table.Row(console.Label(l.Name), l.State, show.Dash(l.Host), show.PID(l.PID), show.Dash(l.User),
			show.Ago(l.Age), show.Ago(l.Silence), show.Dash(show.Ellipsis(l.What(), 40)), l.Why)
	}
	return table.Print(e.Env)
}
