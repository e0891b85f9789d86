package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// forgetReport is the output of "clean --results --json".
type forgetReport struct {
	DryRun  bool     `json:"dry_run"`
	Deleted []string `json:"deleted_results"`
	Held    []string `json:"held_jobs"` // not deleted: a running job may be about to record its result
	Errors  []string `json:"errors"`

	refusal error // of one of the held locks
}

// forgetResults removes the results of the given names, or all.
func forgetResults(ctx context.Context, e *Env, src *place.Source, o *cleanOptions) error {
	ledger, err := place.Ability[source.Ledger](src, "clean: --results", source.TraitResults)
	if err = errors.Join(err, src.CheckNames(o.names)); err != nil {
		return err
	}
	sigs := console.CatchSignals()
	defer sigs.Release()
	ctx = sigs.Until(ctx)
	report := &forgetReport{DryRun: o.dryRun, Deleted: []string{}, Held: []string{}, Errors: []string{}}
	f := forgetting{cleanOptions: o, src: src, ledger: ledger, report: report}
	var failed error
	switch {
	case o.failedOnly:
		failed = f.failed(ctx)
	case len(o.names) > 0:
		failed = f.named(ctx)
	default:
		failed = f.all(ctx)
	}
	slices.Sort(report.Deleted)
	slices.Sort(report.Held)
	if o.JSON {
		return errors.Join(failed, report.heldError(), e.PrintJSON(report))
	}
	return errors.Join(failed, report.print(e, o), report.heldError())
}

// forgetting removes results.
type forgetting struct {
	*cleanOptions
	src    *place.Source
	ledger source.Ledger
	mu     sync.Mutex
	report *forgetReport
}

// all removes every result of the group, and its list of jobs, so that a batch can use another list.
func (f *forgetting) all(ctx context.Context) error {
	names, err := f.ledger.Results(ctx)
	if err != nil {
		return err
	}
	chunks := joblist.Nests(names)
	names = slices.DeleteFunc(names, func(name string) bool { _, chunk := joblist.ParseChunkName(name); return chunk })
	failed := errors.Join(f.each(ctx, names), f.chunks(ctx, chunks))
	if failed != nil || f.report.refusal != nil || f.dryRun {
		return failed
	}
	return errors.Join(f.dropProgressMap(ctx), f.src.Retract(ctx))
}

// dropProgressMap removes what hosts have published about results. It runs before a chunk's results are
// removed, in case this process ends in between, and under the chunk's lock, so that no host publishes them
// again meanwhile.
func (f *forgetting) dropProgressMap(ctx context.Context) error {
	chunks, ok := f.ledger.(source.Chunks)
	if !ok || f.dryRun {
		return nil
	}
	return chunks.DropProgressMap(ctx)
}

// named removes the results of the given names.
func (f *forgetting) named(ctx context.Context) error {
	placed, err := findJobs(ctx, f.src, f.names)
	if err != nil {
		return err
	}
	var alone []string
	chunks := map[string]jobsAsked{}
	for _, name := range f.names {
		at, inChunk := placed[name]
		switch _, whole := joblist.ParseChunkName(name); {
		case whole:
			chunks[name] = nil
		case !inChunk:
			alone = append(alone, name)
		case at.Chunk.From > 0 && (at.Result != nil || !f.dryRun):
			chunk := joblist.ChunkName(at.Chunk)
			if jobs, known := chunks[chunk]; !known {
				chunks[chunk] = jobsAsked{at.Number: name}
			} else if jobs != nil {
				jobs[at.Number] = name
			}
		}
	}
	failed := f.each(ctx, alone)
	for chunk, jobs := range chunks {
		failed = errors.Join(failed, f.jobs(ctx, chunk, jobs))
	}
	return failed
}

// jobsAsked are jobs of a chunk, by their numbers; nil means all with a result there. Parts that were
// returned from the chunk stay returned, because other hosts may run them.
type jobsAsked map[int]string

func (j jobsAsked) has(number int) bool { return j == nil || j[number] != "" }

// jobs removes the results of jobs of a chunk, under its lock.
func (f *forgetting) jobs(ctx context.Context, chunk string, jobs jobsAsked) error {
	names := slices.Sorted(maps.Values(jobs))
	if jobs == nil {
		names = []string{chunk}
	}
	if f.dryRun {
		_, err := f.wouldForget(ctx, f.src, chunk)
		return f.report.addAll(names, err)
	}
	lock, err := f.lock(ctx, f.src, chunk)
	if err != nil {
		return f.report.addAll(names, err)
	}
	var forgotten []string
	// Dropped again afterwards, in case a host has seen an outdated lock state from a cache.
	if err = f.dropProgressMap(ctx); err == nil {
		forgotten, err = joblist.Forget(ctx, lock, func(number int, r multilock.Result) bool {
			return jobs.has(number) && (!f.failedOnly || hasFailed(r))
		})
	}
	if len(forgotten) > 0 {
		err = errors.Join(err, f.dropProgressMap(ctx))
	}
	if err == nil {
		f.noteForgot(ctx, f.src, lock.Record(), forgotten...)
		names = forgotten
	}
	return f.report.addAll(names, errors.Join(err, lock.Release(context.WithoutCancel(ctx))))
}

// each removes the results of these names.
func (f *forgetting) each(ctx context.Context, names []string) error {
	var failed error
	show.InParallel(len(names), func(i int) {
		if ctx.Err() != nil {
			return
		}
		did, err := f.forgetOne(ctx, f.src, f.ledger, names[i])
		f.mu.Lock()
		defer f.mu.Unlock()
		if err := f.report.add(names[i], did, err); err != nil && failed == nil {
			failed = err
		}
	})
	return errors.Join(failed, context.Cause(ctx))
}

// addAll adds the outcome for several names.
func (r *forgetReport) addAll(names []string, err error) error {
	for _, name := range names {
		_ = r.add(name, true, err)
	}
	if errors.Is(err, multilock.ErrHeld) {
		return nil
	}
	return err
}

func (r *forgetReport) add(name string, did bool, err error) error {
	switch {
	case errors.Is(err, multilock.ErrHeld):
		r.Held, r.refusal = append(r.Held, name), err
	case err != nil:
		r.Errors = append(r.Errors, err.Error())
		return err
	case did:
		r.Deleted = append(r.Deleted, name)
	}
	return nil
}

// forgetOne removes one result under the lock of its name, so that no process runs the job or commits another
// result meanwhile.
func (o *cleanOptions) forgetOne(ctx context.Context, src *place.Source, ledger source.Ledger, name string) (did bool, err error) {
	_, err = joblist.Summary(ctx, ledger, name)
	absent := errors.Is(err, multilock.ErrNoResult)
	switch {
	case absent && o.dryRun:
		return false, nil
	case err != nil && !absent:
		return false, err
	case o.dryRun:
		return o.wouldForget(ctx, src, name)
	}
	lock, err := o.lock(ctx, src, name)
	if err != nil {
		return false, err
	}
	if absent { // according to a cache, perhaps
		_, err = lock.Outcome(ctx)
	}
	spared := err == nil && o.failedOnly && !stillFailed(ctx, lock)
	if err == nil && !spared {
		err = lock.Forget(ctx)
	}
	if did = err == nil && !spared; did {
		o.noteForgot(ctx, src, lock.Record(), name)
	}
	if errors.Is(err, multilock.ErrNoResult) {
		err = nil
	}
	return did, errors.Join(err, lock.Release(context.WithoutCancel(ctx)))
}

func (o *cleanOptions) lock(ctx context.Context, src *place.Source, name string) (*multilock.Lock, error) {
	return multilock.TryAcquire(ctx, src.Locks, name, multilock.Options{
		User: o.User, Command: "multilock clean --results", StalePolicy: multilock.StalePolicy{MaxAge: o.maxAge.Value},
	})
}

// wouldForget reports whether the lock is free, so that the result could be removed.
func (o *cleanOptions) wouldForget(ctx context.Context, src *place.Source, name string) (bool, error) {
	seen, err := multilock.Inspect(ctx, src.Locks, name, multilock.StalePolicy{MaxAge: o.maxAge.Value})
	if err == nil && seen.State == multilock.StateHeld {
		err = &multilock.HeldError{Name: name, Observation: seen}
	}
	return err == nil, err
}

// noteForgot records the deletion in the history. Errors are ignored: the results are deleted in any case.
func (o *cleanOptions) noteForgot(ctx context.Context, src *place.Source, record source.Record, names ...string) {
	for _, name := range names {
		_ = src.Note(ctx, source.Event{Time: time.Now(), What: source.EventForgot, Name: name, Token: record.Token, By: src.Self, User: o.User})
	}
}

// heldError returns the error for the locks that were held.
func (r *forgetReport) heldError() error {
	if len(r.Held) > 1 {
		return fmt.Errorf("%d results were left alone, because their locks are held: %w", len(r.Held), r.refusal)
	}
	return r.refusal
}

func (r *forgetReport) print(e *Env, o *cleanOptions) error {
	deleted := "deleted"
	if r.DryRun {
		deleted = "would delete"
	}
	names, chunks := show.JoinChunks(r.Deleted)
	for _, name := range names {
		if err := e.Print("%s the result of %s\n", deleted, console.Label(name)); err != nil {
			return err
		}
	}
	for _, jobs := range chunks {
		if err := e.Print("%s the results of %s\n", deleted, jobs); err != nil {
			return err
		}
	}
	if o.Quiet || len(r.Deleted)+len(r.Held)+len(r.Errors) > 0 {
		return nil
	}
	return e.Print("no results to delete\n")
}
