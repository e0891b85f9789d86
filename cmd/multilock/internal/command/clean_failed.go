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

// hasFailed reports whether a job has failed permanently, without a retry to come.
func hasFailed(r multilock.Result) bool { return r.Foreign == "" && r.Final && !r.OK() }

// failedOnes returns the names whose jobs have failed permanently; nil means all names.
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

// failed removes the results of jobs that have failed permanently. It checks each result again under its
// lock, because the job may have run again meanwhile.
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

// stillFailed reads the result under the lock, where no other process can change it.
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

// forgetFailed deletes the failed results for --retry-failed. It is limited to the list's jobs, because other
// lists may share the group.
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
	if n := len(report.Deleted); n > 0 && !o.Quiet {
		e.Say("%s run again", plural(n, "failed job"))
	}
	if n := len(report.Held); n > 0 {
		e.Say("warning: %s that had failed: skipped, because other jobs of their chunk are running; use --retry-failed again when these have ended", plural(n, "job"))
	}
	return nil
}
