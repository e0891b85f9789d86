package main

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// foreseeBatch says what would become of each job. It changes nothing.
func foreseeBatch(ctx context.Context, e *env, src *openedSource, o *batchOptions, list []batchLine) error {
	ledger, err := ability[source.Ledger](src, "batch", source.TraitResults)
	if err != nil {
		return err
	}
	names, err := ledger.Results(ctx)
	if err != nil {
		return err
	}
	verdicts := map[string]string{}
	plan := lockgroup.Plan{Retries: o.retries.Value}
	for _, r := range readResults(ctx, ledger, names, true).List {
		verdicts[r.Name] = r.verdict(plan)
	}
	held, err := src.locks.Names(ctx)
	if err != nil {
		return err
	}
	for _, l := range inspectAll(ctx, src, held, multilock.Patience{MaxAge: o.maxAge.Value}) {
		if l.State != multilock.StateFree.String() {
			verdicts[l.Name] = "held by " + l.Host
		}
	}
	table := tabwriter.NewWriter(e.Stdout, 0, 0, 2, ' ', 0)
	for _, job := range list {
		verdict := verdicts[job.name]
		if verdict == "" {
			verdict = "would run"
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\n", console.Label(job.name), console.Harmless(verdict), console.Harmless(job.command))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print the list: %w", err)
	}
	return nil
}

// verdict is what a result means for a batch.
func (v resultView) verdict(plan lockgroup.Plan) string {
	switch {
	case v.State == resultDone:
		return "done"
	case v.State == resultRetry && v.Attempt <= plan.Retries:
		return fmt.Sprintf("would run again, attempt %d", v.Attempt+1)
	case v.State == stateUnknown:
		return "unknown result"
	}
	return fmt.Sprintf("failed (exit %s on %s)", v.exitCell(), v.Host)
}
