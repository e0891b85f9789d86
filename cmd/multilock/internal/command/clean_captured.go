package command

import (
	"context"
	"errors"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/vfs"
)

// uncaptureReport is the output of "clean --captured --json".
type uncaptureReport struct {
	DryRun  bool       `json:"dry_run"`
	Removed []namedRun `json:"deleted_runs"`
}

// namedRun is a run under a lock.
type namedRun struct {
	Name string `json:"name"`
	Run  uint64 `json:"run_number"`
}

// removeCaptured removes the output of runs that ended longer ago than --keep.
func (o *cleanOptions) removeCaptured(ctx context.Context, e *Env, src *place.Source) error {
	store, with := src.Locks.(runStore)
	if !with {
		return console.Usagef("clean", "--captured: this source has no place for what jobs print")
	}
	locks, err := o.names, src.CheckNames(o.names)
	if len(locks) == 0 && err == nil {
		locks, err = store.CapturedLocks()
	}
	if err != nil {
		return err
	}
	report := uncaptureReport{o.dryRun, []namedRun{}}
	for _, lock := range locks {
		removed, failed := o.removeRuns(ctx, src, store, lock)
		for _, run := range removed {
			report.Removed = append(report.Removed, namedRun{lock, run})
		}
		err = errors.Join(err, failed, ctx.Err())
		if ctx.Err() != nil {
			break
		}
	}
	if o.JSON {
		return errors.Join(err, e.PrintJSON(report))
	}
	return errors.Join(err, report.print(e, o))
}

// removeRuns removes the output of runs under one lock. It lists the files before it looks up the holder, so
// that all listed runs but the holder's have ended.
func (o *cleanOptions) removeRuns(ctx context.Context, src *place.Source, store runStore, lock string) (removed []uint64, err error) {
	dir, err := store.FindRuns(lock)
	if vfs.Gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // a directory
	files, err := dir.Runs()
	if err != nil || len(files) == 0 {
		return nil, errors.Join(err, o.dropRuns(store, lock))
	}
	now, err := dir.Now()
	if err != nil {
		return nil, err
	}
	seen, err := multilock.Inspect(ctx, src.Locks, lock, multilock.StalePolicy{MaxAge: o.maxAge.Value})
	if err != nil {
		return nil, err
	}
	spared := map[string]bool{}
	if seen.State != multilock.StateFree && seen.State != multilock.StateDead {
		spared[seen.Record.Token] = true
	}
	for _, f := range files {
		spared[f.Token] = spared[f.Token] || now.Sub(f.ModTime) < o.keep.Value
	}
	for _, f := range files {
		if spared[f.Token] {
			continue
		}
		if !o.dryRun {
			if failed := dir.Remove(f.Name); failed != nil {
				err = errors.Join(err, failed)
				continue
			}
		}
		if n := len(removed); n == 0 || removed[n-1] != f.Run {
			removed = append(removed, f.Run)
		}
	}
	return removed, errors.Join(err, o.dropRuns(store, lock))
}

func (o *cleanOptions) dropRuns(store runStore, lock string) error {
	if o.dryRun {
		return nil
	}
	return store.DropRuns(lock)
}

func (r uncaptureReport) print(e *Env, o *cleanOptions) error {
	verb := "removed"
	if r.DryRun {
		verb = "would remove"
	}
	for _, run := range r.Removed {
		if err := e.Print("%s the output of run %d under %s\n", verb, run.Run, console.Label(run.Name)); err != nil {
			return err
		}
	}
	if o.Quiet || len(r.Removed) > 0 {
		return nil
	}
	return e.Print("no output to remove\n")
}
