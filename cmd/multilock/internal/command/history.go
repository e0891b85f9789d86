package command

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/multilock/source"
)

type historyOptions struct {
	common
	since console.Duration
	limit console.Number
	names []string
}

// History lists what happened.
func History(e *Env) *cli.Command {
	o := &historyOptions{}
	return &cli.Command{
		Name:      "history",
		Usage:     "show who acquired, released, lost and broke what",
		ArgsUsage: "[NAME...]",
		Description: `Lists what happened to the locks of the group, oldest first: who acquired,
released, lost or broke what, when and on what evidence; runs with their exit
codes and durations. Times are those of the hosts that wrote them. With --json,
one object per line.`,
		Flags: []cli.Flag{
			&cli.GenericFlag{Name: "since", Value: &o.since, Usage: "only the last `DURATION`, such as 2h or 7d"},
			&cli.GenericFlag{Name: "limit", Value: &o.limit, Usage: "only the last `N` events"},
		},
		Action: action(e, &o.common, o.check, func(ctx context.Context, src *place.Source) error { return o.run(ctx, e, src) }),
	}
}

func (o *historyOptions) check(c *cli.Context) error {
	o.names = namesAsked(c)
	if o.limit.Given && o.limit.Value < 1 {
		return console.Usagef("history", "--limit %d: must be at least 1", o.limit.Value)
	}
	return nil
}

func (o *historyOptions) run(ctx context.Context, e *Env, src *place.Source) error {
	chronicle, err := place.Ability[source.Chronicle](src, "history", source.TraitHistory)
	if err = errors.Join(err, src.CheckNames(o.names)); err != nil {
		return err
	}
	var since time.Time
	if o.since.Given {
		since = time.Now().Add(-o.since.Value)
	}
	shown, left := o.printer(e), func(what string) { e.Say("warning: %s", what) }
	for ev, err := range o.asked(toldOf(chronicle.History(ctx, since), left), left) {
		if err == nil {
			err = shown.event(ev)
		}
		if err != nil {
			return errors.Join(err, shown.flush())
		}
	}
	return shown.flush()
}

// asked are the events that were asked for. Those that do not fit into memory are given to
// left, in words.
func (o *historyOptions) asked(history iter.Seq2[source.Event, error], left func(string)) iter.Seq2[source.Event, error] {
	return func(yield func(source.Event, error) bool) {
		last := latest{most: o.limit.Value} // none are kept without a limit
		for ev, err := range history {
			switch {
			case err == nil && len(o.names) > 0 && !slices.Contains(o.names, ev.Name):
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

// historyPrinter prints events as they come. A table is as wide as what is in it, so rows
// are gathered; in a long one the columns may move.
type historyPrinter struct {
	env  *Env
	json bool
	rows show.Table
	size int // of their events
}

// maxRows is how many rows have columns of one width, unless their texts are very long.
const (
	maxRows     = 10_000
	maxRowsSize = 16 << 20
)

func (o *historyOptions) printer(e *Env) *historyPrinter {
	p := &historyPrinter{env: e, json: o.JSON}
	if !p.json {
		p.rows.Row("TIME", "NAME", "EVENT", "HOST", "PID", "USER", "DETAILS")
	}
	return p
}

func (p *historyPrinter) event(ev source.Event) error {
	if p.json {
		return p.env.PrintLine(ev)
	}
	p.rows.Row(ev.Time.Local().Format("2006-01-02 15:04:05"), console.Label(ev.Name), ev.What,
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

// details puts what is known beyond the columns into words.
func details(ev source.Event) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if ev.Holder != nil {
		add("of %s", ev.Holder)
	}
	if ev.Attempt > 0 {
		add("attempt %d", ev.Attempt)
	}
	if ev.Exit != nil {
		add("exit %d", *ev.Exit)
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
