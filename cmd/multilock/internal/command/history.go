package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/options"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/multilock/source"
)

type historyOptions struct {
	common
	since, until console.Moment
	limit        console.Number
	events       eventKinds
}

// eventKinds is a flag's value: comma-separated kinds of events.
type eventKinds []source.EventKind

func (k *eventKinds) Set(text string) error {
	for name := range strings.SplitSeq(text, ",") {
		kinds := source.EventKinds()
		i := slices.IndexFunc(kinds, func(kind source.EventKind) bool { return show.EventName(kind) == name })
		if i < 0 {
			return fmt.Errorf("there is no event %q; choose of %s", name, joined(kinds))
		}
		*k = append(*k, kinds[i])
	}
	return nil
}

func joined(kinds []source.EventKind) string {
	names := make([]string, len(kinds))
	for i, kind := range kinds {
		names[i] = show.EventName(kind)
	}
	return strings.Join(names, ", ")
}

// History shows the events of locks and jobs.
func History(e *Env) *cli.Command {
	o := &historyOptions{}
	return &cli.Command{
		Name:      "history",
		Usage:     "show lock and job events",
		ArgsUsage: "[options] [NAME...]",
		Description: `Shows which process acquired, released, lost or broke which lock, and how jobs
ended.

   multilock -d /shared history nightly --since 7d
   multilock -d /shared history --event broken,lost
   multilock -d /shared history --limit 20 --json`,
		Flags:  e.Flags("history", options.Values{"since": &o.since, "until": &o.until, "event": &o.events, "limit": &o.limit}),
		Action: action(e, &o.common, o.read, func(ctx context.Context, src *place.Source) error { return o.run(ctx, e, src) }),
	}
}

func (o *historyOptions) read(*cli.Context) error {
	if o.since.Given && o.until.Given && o.until.Value.Before(o.since.Value) {
		return console.Usagef("history", "--until %s is before --since %s", &o.until, &o.since)
	}
	return nil
}

func (o *historyOptions) run(ctx context.Context, e *Env, src *place.Source) error {
	chronicle, err := place.Ability[source.Journal](src, "history", source.TraitHistory)
	if err = errors.Join(err, src.CheckNames(o.names)); err != nil {
		return err
	}
	shown, left := o.printer(e), func(what string) { e.Say("warning: %s", what) }
	events := chronicle.History(ctx, o.since.Value)
	recent, backward := chronicle.(source.RecentJournal)
	if backward = backward && o.limit.Given; backward {
		events = recent.Latest(ctx, o.since.Value)
	}
	for ev, err := range o.asked(reportLeftOut(events, left), backward, left) {
		if err == nil {
			err = shown.event(ev)
		}
		if err != nil {
			return errors.Join(err, shown.flush())
		}
	}
	if !shown.any && !o.Quiet && !o.JSON {
		e.Say("%s", cmp.Or(neverUsed(ctx, src), "no such event is in the history of "+src.Where()))
	}
	return shown.flush()
}

// wants reports whether an event was asked for. The source has already applied --since.
func (o *historyOptions) wants(ev source.Event) bool {
	return (len(o.names) == 0 || slices.Contains(o.names, ev.Name)) &&
		(len(o.events) == 0 || slices.Contains(o.events, ev.What)) &&
		(!o.until.Given || !ev.Time.After(o.until.Value))
}

// asked filters the history, which starts with the latest event if backward. It calls left if --limit asks
// for more events than fit into memory.
func (o *historyOptions) asked(history iter.Seq2[source.Event, error], backward bool, left func(string)) iter.Seq2[source.Event, error] {
	return func(yield func(source.Event, error) bool) {
		last := latest{most: o.limit.Value, backward: backward} // unused without a limit
		for ev, err := range history {
			if last.full() {
				break
			}
			switch {
			case err == nil && !o.wants(ev):
			case err == nil && o.limit.Given:
				last.add(ev)
			case !yield(ev, err):
				return
			}
		}
		if last.over > 0 {
			left(fmt.Sprintf("these are the last %d events, for more do not fit into memory; without --limit all are shown", len(last.events())))
		}
		for _, ev := range last.events() {
			if !yield(ev, nil) {
				return
			}
		}
	}
}

// historyPrinter prints events as they arrive. It buffers rows to align them, so column widths may change
// within a long table.
type historyPrinter struct {
	env  *Env
	json bool
	rows show.Table
	size int // of the buffered events
	any  bool
}

// maxRows and maxRowsSize bound the rows that share their column widths.
const (
	maxRows     = 10_000
	maxRowsSize = 16 << 20
)

func (o *historyOptions) printer(e *Env) *historyPrinter {
	p := &historyPrinter{env: e, json: o.JSON}
	if !p.json {
		p.rows.Row("TIME ("+time.Now().Format("MST -07:00")+")", "NAME", "EVENT", "HOST", "PID", "USER", "DETAILS")
	}
	return p
}

func (p *historyPrinter) event(ev source.Event) error {
	p.any = true
	if p.json {
		return p.env.PrintLine(show.EventOf(ev))
	}
	p.rows.Row(ev.Time.Local().Format("2006-01-02 15:04:05"), console.Label(ev.Name), show.EventName(ev.What),
		show.Dash(ev.By.Host), show.PID(ev.By.PID), show.Dash(ev.User), details(ev))
	if p.size += sizeOf(ev); len(p.rows) < maxRows && p.size < maxRowsSize {
		return nil
	}
	return p.flush()
}

func (p *historyPrinter) flush() error {
	rows := p.rows
	if p.rows, p.size = nil, 0; len(rows) == 0 {
		return nil
	}
	return rows.Print(p.env.Env)
}

// missedBefore returns how many ticks before a run were missed, "" for none.
func missedBefore(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s missed before it)", plural(n, "tick"))
}

// details describes what the columns do not show.
func details(ev source.Event) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if ev.Holder != nil {
		add("of %s", ev.Holder)
	}
	if ev.Attempt > 0 {
		add("attempt %d", ev.Attempt)
	}
	if ev.What == source.EventCommitted && !ev.Tick.IsZero() {
		add("tick %s%s", utc(ev.Tick), missedBefore(ev.Missed))
	}
	if ev.Exit != nil {
		add("exit %d", *ev.Exit)
	}
	if ev.JobExit != nil {
		add("the job's own: %d", *ev.JobExit)
	}
	if c := ev.Chunk; c != nil {
		add("%d done%s, of %s", c.Done, show.Some(c.Failed, "failed"), source.Range{From: c.From, To: c.To})
	}
	if ev.Signal != "" {
		add("signal: %s", ev.Signal)
	}
	if ev.Held > 0 {
		add("held %s", console.Short(ev.Held))
	}
	if ev.Waited > time.Second {
		add("after waiting %s", console.Short(ev.Waited))
	}
	if ev.Fence > 0 {
		add("fence %d", ev.Fence)
	}
	if ev.Command != "" {
		add("%s", show.Ellipsis(ev.Command, 60))
	}
	if ev.Why != "" {
		add("%s", ev.Why)
	}
	return strings.Join(parts, ", ")
}
