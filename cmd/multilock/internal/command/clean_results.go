package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// forgetReport is what "clean --results --json" prints.
type forgetReport struct {
	DryRun    bool     `json:"dry_run"`
	Forgotten []string `json:"forgotten"`
	Held      []string `json:"held"` // left alone: their jobs may be about to be recorded
	Failed    []string `json:"failed"`

	refusal error // by one of the held
}

// forgetResults removes the results of the names, or all.
func forgetResults(ctx context.Context, e *Env, src *place.Source, o *cleanOptions) error {
	ledger, err := place.Ability[source.Ledger](src, "clean: --results", source.TraitResults)
	if err = errors.Join(err, src.CheckNames(o.names)); err != nil {
		return err
	}
	sigs := console.CatchSignals()
	defer sigs.Release()
	ctx = sigs.Until(ctx)
	names, err := namesOrAll(o.names, func() ([]string, error) { return ledger.Results(ctx) })
	if err != nil {
		return err
	}
	report := &forgetReport{DryRun: o.dryRun, Forgotten: []string{}, Held: []string{}, Failed: []string{}}
	failed := report.forgetAll(ctx, src, ledger, names, o)
	if len(o.names) == 0 && !o.dryRun && failed == nil && report.refusal == nil {
		failed = src.Retract(ctx) // a batch in this group may have another list then
	}
	slices.Sort(report.Forgotten)
	slices.Sort(report.Held)
	if o.JSON {
		return errors.Join(failed, report.heldError(), e.PrintJSON(report))
	}
	return errors.Join(failed, report.print(e, o), report.heldError())
}

func (r *forgetReport) forgetAll(ctx context.Context, src *place.Source, ledger source.Ledger, names []string, o *cleanOptions) error {
	var mu sync.Mutex
	var failed error
	show.InParallel(len(names), func(i int) {
		if ctx.Err() != nil {
			return
		}
		did, err := o.forgetOne(ctx, src, ledger, names[i])
		mu.Lock()
		defer mu.Unlock()
		if err := r.add(names[i], did, err); err != nil && failed == nil {
			failed = err
		}
	})
	return errors.Join(failed, context.Cause(ctx))
}

func (r *forgetReport) add(name string, did bool, err error) error {
	switch {
	case errors.Is(err, multilock.ErrHeld):
		r.Held, r.refusal = append(r.Held, name), err
	case err != nil:
		r.Failed = append(r.Failed, err.Error())
		return err
	case did:
		r.Forgotten = append(r.Forgotten, name)
	}
	return nil
}

// forgetOne removes one result, under the lock of its name: nobody runs the job
// then, or is about to commit another result.
func (o *cleanOptions) forgetOne(ctx context.Context, src *place.Source, ledger source.Ledger, name string) (did bool, err error) {
	switch _, err := ledger.Result(ctx, name); {
	case errors.Is(err, multilock.ErrNoResult) && o.dryRun:
		return false, nil
	case err != nil && !errors.Is(err, multilock.ErrNoResult):
		return false, err
	}
	if o.dryRun {
		return o.wouldForget(ctx, src, name)
	}
	lock, err := multilock.TryAcquire(ctx, src.Locks, name, multilock.Options{
		User: o.User, Command: "multilock clean --results", Patience: multilock.Patience{MaxAge: o.maxAge.Value},
	})
	if err != nil {
		return false, err
	}
	did, err = forgetUnder(ctx, lock)
	if did {
		o.noteForgot(ctx, src, lock.Record())
	}
	return did, errors.Join(err, lock.Release(context.WithoutCancel(ctx)))
}

// forgetUnder asks first, so that the answer is not a cache's.
func forgetUnder(ctx context.Context, lock *multilock.Lock) (did bool, err error) {
	_, err = lock.Outcome(ctx)
	if errors.Is(err, multilock.ErrNoResult) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	err = lock.Forget(ctx)
	return err == nil, err
}

// wouldForget looks whether the lock is in somebody's hands.
func (o *cleanOptions) wouldForget(ctx context.Context, src *place.Source, name string) (bool, error) {
	seen, err := multilock.Inspect(ctx, src.Locks, name, multilock.Patience{MaxAge: o.maxAge.Value})
	if err == nil && seen.State == multilock.StateHeld {
		err = &multilock.HeldError{Name: name, Sighting: seen}
	}
	return err == nil, err
}

func (o *cleanOptions) noteForgot(ctx context.Context, src *place.Source, record source.Record) {
	_ = src.Note(ctx, source.Event{ // the result is gone, written down or not
		Time: time.Now(), What: source.EventForgot, Name: record.Name, Token: record.Token, By: src.Self, User: o.User,
	})
}

// heldError tells of the locks that were held, in the words for one of them.
func (r *forgetReport) heldError() error {
	if len(r.Held) > 1 {
		return fmt.Errorf("%d results were left alone, because their locks are held: %w", len(r.Held), r.refusal)
	}
	return r.refusal
}

func (r *forgetReport) print(e *Env, o *cleanOptions) error {
	forgot := "forgot"
	if r.DryRun {
		forgot = "would forget"
	}
	for _, name := range r.Forgotten {
		if err := e.Print("%s the result of %s\n", forgot, console.Label(name)); err != nil {
			return err
		}
	}
	if o.Quiet || len(r.Forgotten)+len(r.Held)+len(r.Failed) > 0 {
		return nil
	}
	return e.Print("no results to forget\n")
}
