package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/options"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/cmd/multilock/internal/survey"
	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

type statusOptions struct {
	common
	probing
	maxAge  console.Duration
	watch   bool
	every   console.Duration
	results bool
	all     bool
	asked   source.Probe // --probe, nil without
	// inspector remembers earlier inspections of --watch; nil without it, or with --all.
	inspector *multilock.Inspector
}

// statusReport is the output of "status --json".
type statusReport struct {
	Base    string        `json:"base"`
	Group   string        `json:"group"`
	Locks   []show.Lock   `json:"locks"`
	Results *show.Results `json:"results"` // null for a source without results
	Queues  []show.Queue  `json:"queues"`  // of waiters with --fair
	// Groups are all known groups of the place, including this one.
	Groups []source.GroupSummary `json:"groups,omitempty"`
	// Unreadable lists what could not be read, and why.
	Unreadable []string `json:"unreadable,omitempty"`

	where string // source and group, for messages
	place place.Place

	unused string // a text if the group has never been used, otherwise ""
}

// Status shows locks, their holders and last heartbeats.
func Status(e *Env) *cli.Command {
	o := &statusOptions{}
	return &cli.Command{
		Name:      "status",
		Aliases:   []string{"ls"},
		Usage:     "show locks, their holders and last heartbeats",
		ArgsUsage: "[options] [NAME...]",
		Description: `Shows which process holds which lock, since when, and its last heartbeat.

   STATE
   held      by a live process
   suspect   without a heartbeat for too long, or for an unknown time;
             "multilock break NAME" watches it, then may clear it
   dead      for certain: the next process that wants the lock takes it over
   free      shown for a given NAME
   unknown   not readable; the exit code is then 123

With NAMEs the exit code shows their state, also with -q, which prints nothing:

     0  all are free, or their holders are dead: the next process gets them
   121  one is held, or suspect
   123  one is not readable

Without NAMEs it is 0 in all of these cases.`,
		Flags: e.Flags("status", options.Values{
			"watch": &o.watch, "all": &o.all, "results": &o.results, "interval": &o.every, "max-age": &o.maxAge, "probe": &o.Probe,
		}),
		Action: action(e, &o.common, nil,
			func(ctx context.Context, src *place.Source) error { return o.run(ctx, e, src) }),
	}
}

func (o *statusOptions) run(ctx context.Context, e *Env, src *place.Source) error {
	err := o.check(src)
	if err == nil {
		o.asked, err = o.prober(e, src, "status", e.Say)
	}
	if err != nil {
		return err
	}
	if o.watch {
		if !o.all { // with --all each inspection reopens the groups
			o.inspector = multilock.NewInspector(src.Locks, o.stalePolicy())
			defer o.inspector.Close() //nolint:errcheck // it was only read
		}
		return watchStatus(ctx, e, src, o)
	}
	seen, err := o.look(ctx, e, src)
	if err != nil {
		return err
	}
	return errors.Join(o.show(e, seen), seen.exitStatus(o))
}

// observation is the state of one group or of all groups.
type observation interface {
	screen(o *statusOptions) screen
	reports() []statusReport // one report for each group
	missing() []string
	exitStatus(o *statusOptions) error // the error for the exit code
}

func (o *statusOptions) look(ctx context.Context, e *Env, src *place.Source) (observation, error) {
	if o.all {
		return o.lookAtAll(ctx, e, src)
	}
	report, err := o.lookAtLocks(ctx, src)
	if err == nil && len(o.names) == 0 {
		report.lookAtGroups(ctx, src)
	}
	if err == nil && len(o.names) == 0 && report.isEmpty() {
		report.unused = neverUsed(ctx, src)
	}
	return report, err
}

// check rejects what the source does not support. Results are optional unless requested.
func (o *statusOptions) check(src *place.Source) error {
	if o.all {
		if _, ok := src.Locks.(source.GroupLister); !ok {
			return console.Usagef("status", "--all shows all groups of a source that can list them, and this one cannot")
		}
	}
	if o.results {
		if _, err := place.Ability[source.Ledger](src, "status: --results", source.TraitResults); err != nil {
			return err
		}
	}
	return src.CheckNames(o.names)
}

// lookAtLocks inspects the named locks, or all held ones.
func (o *statusOptions) lookAtLocks(ctx context.Context, src *place.Source) (statusReport, error) {
	report := statusReport{Base: src.Place.Public(), Group: src.Place.Group, Locks: []show.Lock{}, Queues: []show.Queue{}, where: src.Where(), place: src.Place}
	if len(o.names) > 0 {
		report.unused = neverUsed(ctx, src) // before reading queues, which leaves a trace
	}
	if report.unused == "" {
		report.lookAtQueues(ctx, src, o.names)
	}
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
	slices.SortFunc(names, show.Natural)
	for _, l := range o.inspect(ctx, src, names) {
		if l.State != multilock.StateFree.String() {
			report.Locks = append(report.Locks, l)
		}
	}
	if o.watch || o.JSON { // the table has no room for them
		show.ReadRunning(ctx, src.Locks, report.Locks)
	}
	return report, o.lookAtResults(ctx, src, &report)
}

// lookAtQueues reads the queues. Errors only cause warnings, as for results.
func (r *statusReport) lookAtQueues(ctx context.Context, src *place.Source, names []string) {
	queues, err := show.Queues(ctx, src, names)
	if err != nil {
		r.Unreadable = append(r.Unreadable, "the queues: "+console.Line(err.Error()))
	}
	r.Queues = append(r.Queues, queues...)
	slices.SortFunc(r.Queues, func(a, b show.Queue) int { return show.Natural(a.Name, b.Name) })
}

func (o *statusOptions) inspect(ctx context.Context, src *place.Source, names []string) []show.Lock {
	if o.inspector == nil {
		return show.Inspect(ctx, src, names, o.stalePolicy())
	}
	return show.Look(ctx, src, names, o.inspector)
}

func (o *statusOptions) stalePolicy() multilock.StalePolicy {
	return multilock.StalePolicy{MaxAge: o.maxAge.Value, Probe: o.asked}
}

// lookAtNamed inspects the named locks. A job of a list may run under a chunk's lock, and have its result
// there.
func (o *statusOptions) lookAtNamed(ctx context.Context, src *place.Source, report *statusReport) error {
	placed, err := findJobs(ctx, src, o.names)
	if errors.Is(err, fs.ErrPermission) {
		report.Unreadable, err = append(report.Unreadable, console.Line(err.Error())), nil
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
			locks[i] = joblist.ChunkName(at.Chunk)
		}
	}
	for i, l := range o.inspect(ctx, src, locks) {
		if locks[i] != o.names[i] {
			l = l.For(o.names[i])
		}
		report.Locks = append(report.Locks, l)
	}
	ledger, ok := source.Ability[source.Ledger](src.Locks, source.TraitResults)
	if !ok {
		return nil
	}
	results := show.ReadResults(ctx, ledger, alone, true, nil)
	results.Add(ctx, ledger, found)
	report.addResults(results)
	return nil
}

// findJobs finds the jobs that belong to chunks.
func findJobs(ctx context.Context, src *place.Source, names []string) (map[string]joblist.Placed, error) {
	ledger, ok := source.Ability[source.Ledger](src.Locks, source.TraitResults)
	if !ok {
		return nil, nil
	}
	held, err := src.Locks.Names(ctx)
	if err != nil {
		return nil, err
	}
	return joblist.Find(ctx, ledger, names, held)
}

func (o *statusOptions) lookAtResults(ctx context.Context, src *place.Source, report *statusReport) error {
	ledger, ok := source.Ability[source.Ledger](src.Locks, source.TraitResults)
	if !ok {
		return nil
	}
	names, err := ledger.Results(ctx)
	if errors.Is(err, fs.ErrPermission) && !o.results { // only the locks were requested
		report.Unreadable = append(report.Unreadable, console.Line(err.Error()))
		return nil
	}
	if err != nil {
		return err
	}
	list, err := survey.OpenList(ctx, src.Locks)
	if err != nil {
		report.Unreadable = append(report.Unreadable, console.Line(err.Error()))
	}
	for _, l := range report.Locks {
		if l.State == multilock.StateHeld.String() || l.State == multilock.StateSuspect.String() {
			list.Held(l.Name, l.HeldFor())
		}
	}
	results := show.ReadResults(ctx, ledger, names, show.KeepDone(o.results), list)
	results.Batch = list.Progress()
	report.addResults(results)
	return nil
}

func (r *statusReport) addResults(results show.Results) {
	r.Results = &results
	for _, v := range results.List {
		if v.State == show.StateUnknown {
			r.Unreadable = append(r.Unreadable, fmt.Sprintf("how %s ended cannot be read: %s", show.Label(v.Name), console.Line(v.Why)))
		}
	}
}

func (o *statusOptions) listsAll() bool { return o.results || len(o.names) > 0 }

func (o *statusOptions) show(e *Env, s observation) error {
	missing := s.missing()
	warnOf(e, len(missing), func(i int) string { return missing[i] })
	if o.JSON {
		return e.PrintJSON(s)
	}
	return s.screen(o).print(e, o.Quiet)
}

func (r statusReport) isEmpty() bool {
	return len(r.Queues)+len(r.Unreadable)+len(r.Locks) == 0 && (r.Results == nil || r.Results.Total() == 0 && r.Results.Batch == nil)
}

func (r statusReport) missing() []string { return r.Unreadable }

func (r statusReport) reports() []statusReport { return []statusReport{r} }

func (r statusReport) screen(o *statusOptions) screen {
	s := screen{remarks: r.remarks(o)}
	if r.Results != nil {
		s.pace = show.Pace(r.Results.Batch)
	}
	if o.Quiet && len(o.names) > 0 {
		return s // the exit code reports it
	}
	for _, row := range r.rows() {
		s.table.Row(row...)
	}
	if len(r.Locks) == 0 {
		s.table, s.empty = nil, "nothing is held in "+r.where
	}
	if o.listsAll() && r.Results != nil && r.Results.Total() > 0 {
		s.results = r.Results.Table()
	}
	return s
}

// rows returns a heading, and the locks as text.
func (r statusReport) rows() [][]any {
	rows := [][]any{{"NAME", "STATE", "HOST", "PID", "USER", "HELD FOR", "LAST HEARTBEAT", "EXPIRES", "COMMAND", "WHY"}}
	for _, l := range r.Locks {
		rows = append(rows, []any{
			console.Label(l.Name), l.State, show.Dash(l.Host), show.PID(l.PID), show.Dash(l.User),
			l.AgoCell(l.Age), l.AgoCell(l.Silence), l.ExpiresCell(), show.Dash(show.Ellipsis(l.What(), 40)), l.Why,
		})
	}
	return rows
}

// remarks returns the lines below the table.
func (r statusReport) remarks(o *statusOptions) (lines []string) {
	for _, q := range r.Queues {
		lines = append(lines, console.Harmless(q.Sentence()))
	}
	if !o.listsAll() && r.Results != nil && (r.Results.Total() > 0 || r.Results.Batch != nil) {
		lines = append(lines, r.Results.Summary())
	}
	if r.unused != "" {
		lines = append(lines, r.unused)
	}
	if text := r.others(); text != "" {
		lines = append(lines, text)
	}
	return lines
}

// maxWarnings bounds how many warnings of a kind are printed.
const maxWarnings = 10

func warnOf(e *Env, n int, what func(i int) string) {
	for i := range min(n, maxWarnings) {
		e.Say("warning: %s", what(i))
	}
	if more := n - maxWarnings; more > 0 {
		e.Say("warning: and %d more of that kind; --json names them all", more)
	}
}

// exitStatus returns an error if a lock could not be inspected, or if a named lock is held.
func (r statusReport) exitStatus(o *statusOptions) error {
	if err := r.unsure(); err != nil || len(o.names) == 0 {
		return err
	}
	for _, l := range r.Locks {
		if l.State == multilock.StateHeld.String() || l.State == multilock.StateSuspect.String() {
			return &console.ReportedError{Code: console.ExitHeld}
		}
	}
	return nil
}

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
