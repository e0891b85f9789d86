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
	all    bool
	csv    bool
	now    time.Time
}

// Report writes a web page of runs and failures.
func Report(e *Env) *cli.Command {
	o := &reportOptions{}
	return &cli.Command{
		Name:      "report",
		ArgsUsage: "[options] -o FILE",
		Usage:     "make a web page of runs and failures",
		Description: `Makes a web page (one file) of what ran where and when, and what failed.

   multilock -d /shared -g convert report -o convert.html
   multilock -d /shared -g convert report --csv -o convert.csv`,
		Flags: e.Flags("report", options.Values{"output": &o.output, "since": &o.since, "logs": &o.logs, "title": &o.title, "all": &o.all, "csv": &o.csv}),
		Action: action(e, &o.common, func(*cli.Context) error { return o.check(e) },
			func(ctx context.Context, src *place.Source) error { return o.run(ctx, e, src) }),
	}
}

func (o *reportOptions) check(e *Env) error {
	if o.output == "" && !o.JSON && !o.csv && console.IsTerminal(e.Stdout) {
		return console.Usagef("report", "a page is nothing for a terminal; write it to a file with -o FILE, or see it all the same with -o -")
	}
	if o.all && (o.output == "-" || o.output == "/dev/stdout") {
		return console.Usagef("report", "--all makes several pages: name a directory with -o DIRECTORY")
	}
	return nil
}

func (o *reportOptions) run(ctx context.Context, e *Env, src *place.Source) error {
	o.now = time.Now()
	if o.all {
		return o.runAll(ctx, e, src)
	}
	t, err := o.timeline(ctx, e, src)
	if err != nil {
		return err
	}
	return o.write(e, t)
}

// timeline reads the group's history, locks and results.
func (o *reportOptions) timeline(ctx context.Context, e *Env, src *place.Source) (*report.Timeline, error) {
	var since time.Time
	if o.since.Given {
		since = o.now.Add(-o.since.Value)
	}
	in, err := readReport(ctx, src.Locks, since)
	if err != nil {
		return nil, err
	}
	in.Base, in.Group, in.Made, in.Since = o.Public(), src.Place.Group, o.now.UTC(), since.UTC()
	in.Title = cmp.Or(o.title, in.Group, in.Base)
	t := report.Build(in)
	o.findLogs(e, src, t)
	return t, nil
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
	switch {
	case o.csv:
		return report.CSV(t, console.Harmless)
	case !o.JSON:
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
