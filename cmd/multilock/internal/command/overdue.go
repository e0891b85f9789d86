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

// Overdue tells which jobs have not run as they should.
func Overdue(e *Env) *cli.Command {
	o := &overdueOptions{}
	asked := action(e, &o.common, nil, func(ctx context.Context, src *place.Source) error { return o.run(ctx, e, src) })
	return &cli.Command{
		Name:      overdueName,
		Usage:     "tell which jobs are late or have failed, for Nagios",
		ArgsUsage: "[options] [NAME...]",
		Description: `Tells which jobs of "run --every" and "run --once" are late or have failed. Any
host can ask. Its exit codes are those of Nagios plugins, not of other commands:
0 all is well, 1 warning, 2 critical, 3 it cannot be told.

   multilock -d /shared overdue                all jobs of the group
   multilock -d /shared overdue nightly --within 2h
   multilock -d /shared overdue -q             prints only if not all is well
   multilock -d /shared overdue backup --expect-every 1d

A host can ask on which no job runs: so the watcher does not die with the cron that it
watches. Looking changes nothing. How often a job runs its results tell. It is late when its next run has not ended
well --within so long after its tick; without --within that is half the time between
two ticks, after which a tick without a run is missed for good. A job that is
running, and began in time, has until the tick after. Times are by the clock of the
file server; who may not write there, and so cannot ask it, goes by his own.

A job whose first run has not ended is known by its lock, and late in the same way; one
of --once if it runs for longer than --within, and without that when its holder has died.
NAME is for a job that must exist: if it never ran, there is nothing else to know it by.
--expect-every is for jobs that run without --every, and for "acquire": such a job is to
end well once in a DURATION, as the history tells.
A job that was given up is late for ever, until "multilock clean --results NAME". Who
does that with the last one takes the check away, too: with no job left that is UNKNOWN.
The jobs of "batch" are not looked at; it says itself which have failed.

Who watches as another user (nagios) says whose records to believe: --trust USER.

Exit codes, which are those of Nagios plugins, and NOT those of other commands:
     0  OK: all have ended well, are not due, or are running in time
     1  WARNING: a job failed and will be tried again, or is late and running
     2  CRITICAL: a job is late, or has failed for good
     3  UNKNOWN: it cannot be told (no such job, nothing readable, usage)
Of several jobs the worst counts: 2, then 3, then 1. The first line says it all.`,
		Flags:  e.Flags("overdue", options.Values{"within": &o.within, "expect-every": &o.expected}),
		Action: func(c *cli.Context) error { return o.conclude(e, asked(c)) },
	}
}

// overdueReport is what "overdue --json" prints.
type overdueReport struct {
	Base  string            `json:"base"`
	Group string            `json:"group"`
	Alarm show.Alarm        `json:"alarm"`
	Exit  int               `json:"exit"`
	Jobs  []show.OverdueJob `json:"jobs"`
	// Done counts the jobs of --once that have ended well; they are not in Jobs unless they
	// were asked for.
	Done int `json:"done"`
	// OwnClock says that the times were judged by this host's clock, for the source's could
	// not be read.
	OwnClock bool     `json:"own_clock,omitempty"`
	Missing  []string `json:"missing,omitempty"`
	Error    string   `json:"error,omitempty"`
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
		return fmt.Errorf("no job has run by --every or --once in %s, or the results of all are forgotten; check -d and -g, name the jobs that should have run, or take this check away with the last job", src.Where())
	}
	alarm := show.Worst(w.jobs)
	report := overdueReport{
		Base: src.Place.Public(), Group: src.Place.Group, Alarm: alarm, Exit: alarm.Code(), Jobs: w.jobs, Done: w.done, OwnClock: w.ownClock, Missing: w.missing,
	}
	if err := o.tell(e, report); err != nil {
		return err
	}
	if alarm == show.AlarmOK {
		return nil
	}
	return &console.ToldError{Code: alarm.Code()}
}

func (o *overdueOptions) tell(e *Env, r overdueReport) error {
	switch {
	case o.JSON:
		return e.PrintJSON(r)
	case o.Quiet && r.Alarm == show.AlarmOK:
		return nil
	}
	if err := e.Print("%s\n", r.line()); err != nil || o.Quiet {
		return err
	}
	warnOf(e, len(r.Missing), func(i int) string { return r.Missing[i] })
	if len(r.Jobs) == 0 {
		return nil
	}
	return show.OverdueTable(e.Env, r.Jobs)
}

// line is what a monitor shows, with the numbers behind a bar that it may draw. A bar in a
// name would begin the numbers.
func (r overdueReport) line() string {
	late, failed, unknown := show.OverdueSum(r.Jobs)
	text := plural(len(r.Jobs)+r.Done, "job")
	if troubled := show.Troubled(r.Jobs); troubled != "" {
		text += ": " + troubled
	}
	return monitorLine(r.Alarm, text) + fmt.Sprintf(" | jobs=%d late=%d failed=%d unknown=%d", len(r.Jobs)+r.Done, late, failed, unknown)
}

func monitorLine(alarm show.Alarm, text string) string {
	return "OVERDUE " + strings.ToUpper(string(alarm)) + " - " + strings.ReplaceAll(text, "|", "/")
}

// conclude makes of whatever went wrong what a monitor understands: that nobody knows.
func (o *overdueOptions) conclude(e *Env, err error) error {
	if err == nil || errors.As(err, new(*console.ToldError)) || errors.As(err, new(*console.SignalError)) {
		return err
	}
	told := &console.ToldError{Code: console.ExitMonitorUnknown}
	text := show.Explain(err)
	var printed error
	if o.JSON {
		printed = e.PrintJSON(overdueReport{
			Base: o.Public(), Group: o.Group, Alarm: show.AlarmUnknown, Exit: told.Code, Jobs: []show.OverdueJob{}, Error: text,
		})
	} else {
		printed = e.Print("%s\n", monitorLine(show.AlarmUnknown, text))
	}
	if printed != nil {
		return &console.CodedError{Code: told.Code, Text: text, Err: err}
	}
	return told
}
