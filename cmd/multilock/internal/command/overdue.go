package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/options"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock/source"
)

type overdueOptions struct {
	common
	within   console.Duration
	expected console.Duration
}

const overdueName = console.MonitorCommand

// Overdue reports jobs that are late or have failed.
func Overdue(e *Env) *cli.Command {
	o := &overdueOptions{}
	asked := action(e, &o.common, nil, func(ctx context.Context, src *place.Source) error { return o.run(ctx, e, src) })
	return &cli.Command{
		Name:      overdueName,
		Usage:     "report jobs that are late or have failed, for Nagios",
		ArgsUsage: "[options] [NAME...]",
		Description: `Reports which jobs of "run --every" and "run --once" are late or have failed. It
works from any host. Its exit codes are those of Nagios plugins, not of other
commands: 0 OK, 1 warning, 2 critical, 3 unknown.

   multilock -d /shared overdue                all jobs of the group
   multilock -d /shared overdue nightly --within 2h
   multilock -d /shared overdue -q             prints only if there is a problem
   multilock -d /shared overdue backup --expect-every 1d

     0  OK: all jobs have succeeded, are not due, or are running in time
     1  WARNING: a job failed and will be retried, or is late and running
     2  CRITICAL: a job is late, or has failed permanently
     3  UNKNOWN: no such job, nothing readable, or wrong usage

The worst of several jobs counts: 2, then 3, then 1. The first line is a summary.`,
		Flags:  e.Flags("overdue", options.Values{"within": &o.within, "expect-every": &o.expected}),
		Action: func(c *cli.Context) error { return o.conclude(e, asked(c)) },
	}
}

// overdueReport is the output of "overdue --json".
type overdueReport struct {
	Base     string            `json:"base"`
	Group    string            `json:"group"`
	Severity show.Severity     `json:"severity"`
	Exit     int               `json:"exit"`
	Jobs     []show.OverdueJob `json:"jobs"`
	// Done counts the jobs of --once that have succeeded. Jobs has them only if they were named.
	Done int `json:"done"`
	// OwnClock means that times were compared with this host's clock, because the source's clock could not be
	// read.
	OwnClock   bool     `json:"own_clock,omitempty"`
	Unreadable []string `json:"unreadable,omitempty"`
	Error      string   `json:"error,omitempty"`
}

func (o *overdueOptions) run(ctx context.Context, e *Env, src *place.Source) error {
	if err := src.CheckNames(o.names); err != nil {
		return err
	}
	if len(o.names) == 0 || !o.expected.Given {
		if _, err := place.Ability[source.Ledger](src, overdueName, source.TraitResults); err != nil {
			return err
		}
	}
	w := watcher{src: src, names: o.names, expected: lockgroup.Expectation{Within: o.within.Value, Every: o.expected.Value}}
	if err := w.look(ctx); err != nil {
		return err
	}
	if len(w.jobs)+w.done == 0 {
		return fmt.Errorf("no job has a result of --every or --once in %s; check -d and -g, name the jobs that should have run, or remove this check if there are no more jobs", src.Where())
	}
	w.findLogs(ctx)
	severity := show.Worst(w.jobs)
	report := overdueReport{
		Base: src.Place.Public(), Group: src.Place.Group, Severity: severity, Exit: severity.Code(), Jobs: w.jobs, Done: w.done, OwnClock: w.ownClock, Unreadable: w.missing,
	}
	if err := o.tell(e, report); err != nil {
		return err
	}
	if severity == show.SeverityOK {
		return nil
	}
	return &console.ReportedError{Code: severity.Code()}
}

func (o *overdueOptions) tell(e *Env, r overdueReport) error {
	switch {
	case o.JSON:
		return e.PrintJSON(r)
	case o.Quiet && r.Severity == show.SeverityOK:
		return nil
	}
	if err := e.Print("%s\n", r.line()); err != nil {
		return err
	}
	for _, job := range r.Jobs {
		if job.Log != "" {
			if err := e.Print("output of %s: %s\n", console.Label(job.Name), job.Log); err != nil {
				return err
			}
		}
	}
	if o.Quiet {
		return nil
	}
	warnOf(e, len(r.Unreadable), func(i int) string { return r.Unreadable[i] })
	if len(r.Jobs) == 0 {
		return nil
	}
	return show.OverdueTable(e.Env, r.Jobs)
}

// line formats a monitor's line, with performance data behind the bar. A bar in a name would start the
// performance data.
func (r overdueReport) line() string {
	late, failed, unknown := show.OverdueSum(r.Jobs)
	text := plural(len(r.Jobs)+r.Done, "job")
	if troubled := show.Troubled(r.Jobs); troubled != "" {
		text += ": " + troubled
	}
	return monitorLine(r.Severity, text) + fmt.Sprintf(" | jobs=%d late=%d failed=%d unknown=%d", len(r.Jobs)+r.Done, late, failed, unknown)
}

func monitorLine(severity show.Severity, text string) string {
	return "OVERDUE " + strings.ToUpper(string(severity)) + " - " + strings.ReplaceAll(text, "|", "/")
}

// conclude reports any other error to the monitor as status unknown.
func (o *overdueOptions) conclude(e *Env, err error) error {
	if err == nil || errors.As(err, new(*console.ReportedError)) || errors.As(err, new(*console.SignalError)) {
		return err
	}
	reported := &console.ReportedError{Code: console.ExitMonitorUnknown}
	text := show.Explain(err)
	var printed error
	if o.JSON {
		printed = e.PrintJSON(overdueReport{
			Base: o.Public(), Group: o.Group, Severity: show.SeverityUnknown, Exit: reported.Code, Jobs: []show.OverdueJob{}, Error: text,
		})
	} else {
		printed = e.Print("%s\n", monitorLine(show.SeverityUnknown, text))
	}
	if printed != nil {
		return &console.CodedError{Code: reported.Code, Text: text, Err: err}
	}
	return reported
}
