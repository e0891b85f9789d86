package command

import (
	"context"
	"errors"

	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/lockgroup/batch"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// hasFailed says that a job has failed for good, and not only until it is tried again.
func hasFailed(r multilock.Result) bool { return r.Foreign == "" && r.Final && !r.OK() }

// failedOnes are those of the names whose jobs have failed for good; of all, if names is nil.
func failedOnes(ctx context.Context, ledger source.Ledger, names map[string]bool) ([]string, error) {
	all, err := ledger.Results(ctx)
	if err != nil {
		return nil, err
	}
	var failed []string
	for _, r := range show.ReadResults(ctx, ledger, all, false, nil).List {
		if r.State == show.ResultFailed && (names == nil || names[r.Name]) {
			failed = append(failed, r.Name)
		}
	}
	return failed, nil
}

// failed removes the results of jobs that have failed for good, and no others: what somebody
// has run again meanwhile is looked at under its lock.
func (f *forgetting) failed(ctx context.Context) (err error) {
	var of map[string]bool
	if len(f.names) > 0 {
		of = setOf(f.names)
	}
	if f.names, err = failedOnes(ctx, f.ledger, of); err != nil || len(f.names) == 0 {
		return err
	}
	return f.named(ctx)
}

// stillFailed asks under the lock: nobody else changes the result then.
func stillFailed(ctx context.Context, lock *multilock.Lock) bool {
	last, err := lock.Outcome(ctx)
	return err == nil && hasFailed(last)
}

func namesOf(list []batch.Job) (names []string) {
	for _, job := range list {
		names = append(names, job.Name)
	}
	return names
}

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// forgetFailed is for --retry-failed. Only jobs of the list are meant: others may share the group.
func (o *batchOptions) forgetFailed(ctx context.Context, e *Env, src *place.Source, list []batch.Job) error {
	ledger, err := place.Ability[source.Ledger](src, "batch: --retry-failed", source.TraitResults)
	if err != nil {
		return err
	}
	report := &forgetReport{DryRun: o.dryRun}
	f := forgetting{cleanOptions: &cleanOptions{common: common{o.Place, o.Output, namesOf(list)}, dryRun: o.dryRun, failedOnly: true}, src: src, ledger: ledger, report: report}
	if err := f.failed(ctx); err != nil && !errors.Is(err, multilock.ErrHeld) {
		return err
	}
	if n := len(report.Forgotten); n > 0 && !o.Quiet {
		e.Say("%s that had failed: to be run again", plural(n, "job"))
	}
	if n := len(report.Held); n > 0 {
		e.Say("warning: %s that had failed: left alone, for others of their chunk are being run; say --retry-failed again when they have ended", plural(n, "job"))
	}
	return nil
}
