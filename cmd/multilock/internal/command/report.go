package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/options"
	"github.com/multilock/go/cmd/multilock/internal/outfile"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/cmd/multilock/report"
)

type reportOptions struct {
	common
	since  console.Duration
	title  string
	output string
	logs   string
}

// Report is the command "report".
func Report(e *Env) *cli.Command {
	o := &reportOptions{}
	return &cli.Command{
		Name:      "report",
		ArgsUsage: "[options] -o FILE",
		Usage:     "make a web page of what ran where, and what failed",
		Description: `Makes a web page (one file) of what ran where and when, and what failed.

   multilock -d /shared -g convert report -o convert.html

The page has a timeline of all jobs of the group on all hosts, with attempts, failures,
lost locks and locks that were cleared, and a list to search. It loads nothing; it can
be mailed, or opened from a disk. It comes from the group's history, from the results of its jobs, and from the locks
that are held now; nothing is changed. The times are those of the hosts that wrote
them. FILE is replaced in one step, so it can lie where a web server finds it. A link is
followed, and a pipe or a device written to, only where nobody else can have put it.
With --json, the same as JSON.`,
		Flags: e.Flags("report", options.Values{"output": &o.output, "since": &o.since, "logs": &o.logs, "title": &o.title}),
		Action: action(e, &o.common, func(*cli.Context) error { return o.check(e) },
			func(ctx context.Context, src *place.Source) error { return o.run(ctx, e, src) }),
	}
}

func (o *reportOptions) check(e *Env) error {
	if o.output == "" && !o.JSON && console.IsTerminal(e.Stdout) {
		return console.Usagef("report", "a page is nothing for a terminal; write it to a file with -o FILE, or see it all the same with -o -")
	}
	return nil
}

func (o *reportOptions) run(ctx context.Context, e *Env, src *place.Source) error {
	var since time.Time
	now := time.Now()
	if o.since.Given {
		since = now.Add(-o.since.Value)
	}
	in, err := readReport(ctx, src.Locks, since)
	if err != nil {
		return err
	}
	in.Base, in.Group, in.Made, in.Since = o.Public(), o.Group, now.UTC(), since.UTC()
	if o.IsFiles() {
		in.Base = place.Absolute(o.Base)
	}
	in.Title = cmp.Or(o.title, o.Group, in.Base)
	timeline := report.Build(in)
	o.findLogs(src, timeline)
	return o.write(e, timeline)
}

// write writes the report, and prints a summary.
func (o *reportOptions) write(e *Env, t *report.Timeline) error {
	out, err := o.render(t)
	if err != nil {
		return err
	}
	for _, what := range t.Missing {
		e.Say("warning: %s", what)
	}
	if t.Summary.Jobs == 0 && !o.Quiet {
		e.Say("nothing has happened in group %q of %s%s; check -d and -g if you expected jobs there", t.Group, t.Base, o.within())
	}
	if o.output == "" || o.output == "-" || o.output == "/dev/stdout" {
		if _, err := e.Stdout.Write(out); err != nil {
			return fmt.Errorf("print the report: %w", err)
		}
		return nil
	}
	if err := outfile.Replace(o.output, out); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if o.Quiet || o.JSON {
		return nil
	}
	return e.Print("%s: %s\n", console.Label(o.output), sumOf(t.Summary))
}

func (o *reportOptions) within() string {
	if !o.since.Given {
		return ""
	}
	return " in the last " + console.Short(o.since.Value)
}

func (o *reportOptions) render(t *report.Timeline) ([]byte, error) {
	if !o.JSON {
		return report.Page(t)
	}
	text, err := console.Lossless(t, "  ")
	if err != nil {
		return nil, errors.Join(errors.New("make the report"), err)
	}
	return console.Escaped(append(console.Stamped(text), '\n')), nil
}

func sumOf(s report.Summary) string {
	return fmt.Sprintf("%s, %d done", plural(s.Jobs, "job"), s.Done) +
		show.Some(s.Incomplete, "with incomplete output") + show.Some(s.Failed, "failed") + show.Some(s.Retry, "to be retried") +
		show.Some(s.Running, "running") + show.Some(s.Claimed, "claimed") + show.Some(s.Pending, "pending") + show.Some(s.Other, "otherwise")
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
