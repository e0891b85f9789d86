package main

import (
	"context"
	"fmt"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/multilock"
)

type statusOptions struct {
	common
	maxAge duration
	watch  bool
	every  duration
	names  []string
}

// statusReport is what "status --json" prints.
type statusReport struct {
	Base  string     `json:"base"`
	Group string     `json:"group"`
	Locks []lockView `json:"locks"`
}

func newStatusCommand(e *env) *cli.Command {
	o := &statusOptions{}
	return &cli.Command{
		Name:      "status",
		Aliases:   []string{"ls"},
		Usage:     "show who holds what, and why that counts as alive",
		ArgsUsage: "[NAME...]",
		Description: `Lists the locks of the group that are held: by whom, for how long, the last sign
of life, and the verdict with its reason. STATE is
   held      by somebody who counts as alive
   suspect   silent for too long; "multilock break NAME" watches it and, if it
             stays silent, clears it, and so does everybody who wants the lock
   dead      provably: whoever comes next takes it
Looking changes nothing.`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "watch", Aliases: []string{"w"}, Destination: &o.watch, Usage: "show it again and again, until interrupted"},
			&cli.GenericFlag{Name: "every", Value: &o.every, Usage: "how often --watch looks (default: 2s)"},
			&cli.GenericFlag{Name: "max-age", Aliases: []string{"maxage"}, Value: &o.maxAge, Usage: "judge locks without a ttl by this age"},
		},
		Action: func(c *cli.Context) error {
			o.common, o.names = readCommon(c), c.Args().Slice()
			return runStatus(c.Context, e, o)
		},
	}
}

func runStatus(ctx context.Context, e *env, o *statusOptions) error {
	src, err := openSource(o.common)
	if err != nil {
		return err
	}
	if !o.watch {
		return closeSource(src, showStatus(ctx, e, src, o))
	}
	return closeSource(src, watchStatus(ctx, e, src, o))
}

func watchStatus(ctx context.Context, e *env, src source, o *statusOptions) error {
	if !o.every.set || o.every.value == 0 {
		o.every.value = 2 * time.Second
	}
	sigs := catchSignals()
	defer sigs.release()
	ctx = sigs.until(ctx)
	for {
		if isTerminal(e.stdout) && !o.json {
			if err := e.print("\x1b[H\x1b[2J%s  every %s\n\n", time.Now().Format(time.TimeOnly), o.every.value); err != nil {
				return err
			}
		}
		if err := showStatus(ctx, e, src, o); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(o.every.value):
		}
	}
}

func showStatus(ctx context.Context, e *env, src source, o *statusOptions) error {
	names := o.names
	if len(names) == 0 {
		all, err := src.Names(ctx)
		if err != nil {
			return err
		}
		names = all
	}
	report := statusReport{Base: src.Base(), Group: src.Group(), Locks: []lockView{}}
	for _, l := range inspectAll(ctx, src, names, multilock.Patience{MaxAge: o.maxAge.value}) {
		if l.State != multilock.Free.String() || len(o.names) > 0 {
			report.Locks = append(report.Locks, l)
		}
	}
	if o.json {
		return e.printJSON(report)
	}
	return printStatus(e, o, report)
}

// inspectors is how many locks are looked at at a time: on NFS a look is a
// handful of requests, each of which takes its time and none of the processor's.
const inspectors = 8

func inspectAll(ctx context.Context, src source, names []string, patience multilock.Patience) []lockView {
	views := make([]lockView, len(names))
	work := make(chan int)
	var group sync.WaitGroup
	for range min(inspectors, len(names)) {
		group.Go(func() {
			for i := range work {
				views[i] = inspectOne(ctx, src, names[i], patience)
			}
		})
	}
	for i := range names {
		work <- i
	}
	close(work)
	group.Wait()
	return views
}

// inspectOne shows an error as what it is: a lock whose state is unknown.
func inspectOne(ctx context.Context, src source, name string, patience multilock.Patience) lockView {
	seen, err := multilock.Inspect(ctx, src, name, patience)
	if err != nil {
		return lockView{Name: name, State: "unknown", Why: err.Error()}
	}
	return viewOf(name, seen)
}

func printStatus(e *env, o *statusOptions, report statusReport) error {
	if len(report.Locks) == 0 {
		if o.quiet {
			return nil
		}
		return e.print("nothing is held in %s/%s\n", report.Base, report.Group)
	}
	table := tabwriter.NewWriter(e.stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "NAME\tSTATE\tHOST\tPID\tUSER\tHELD FOR\tLAST SIGN\tCOMMAND\tWHY")
	for _, l := range report.Locks {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", label(l.Name), l.State, dash(l.Host), pid(l.PID), dash(l.User),
			ago(l.Age), ago(l.Silence), dash(ellipsis(l.Command, 40)), l.Why)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print the status: %w", err)
	}
	return nil
}
