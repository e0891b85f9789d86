package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/runner"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// run acquires the lock and runs the command under it.
func (o *runOptions) run(ctx context.Context, e *Env, src *place.Source) error {
	if err := o.checkAbilities(src); err != nil {
		return err
	}
	o.tellOneHost(e, src)
	sigs := console.CatchSignals()
	console.OutliveReaders()
	defer sigs.Release()
	start := time.Now()
	plan := o.plan()
	switch settled, err := o.settledBefore(ctx, e, src, plan); {
	case settled:
		return err
	case err != nil:
		return o.report(e, endingWithoutLock(o, err), sigs.Next(), func() {})
	}
	return o.runUnderLock(ctx, e, src, sigs, plan, start)
}

// checkAbilities rejects options that the source does not support.
func (o *runOptions) checkAbilities(src *place.Source) error {
	if o.recorded() {
		if _, err := place.Ability[source.Ledger](src, "run: "+o.option(), source.TraitResults); err != nil {
			return err
		}
	}
	if o.ticks() {
		if _, err := place.Ability[source.Timekeeper](src, "run: --every", source.TraitOneClock); err != nil {
			return err
		}
	}
	if o.failAfter.Given {
		if _, err := place.Ability[source.Journal](src, "run: --fail-after", source.TraitHistory); err != nil {
			return err
		}
	}
	if err := requireQueue(src, "run", o.fair); err != nil {
		return err
	}
	return o.checkTimed(src)
}

// checkTimed rejects options that have no meaning for a timed lock.
func (o *runOptions) checkTimed(src *place.Source) error {
	if !src.Timed() {
		return nil
	}
	if o.slots.Given {
		return src.Lacking("run: --slots", source.TraitPromptRelease)
	}
	for _, option := range []struct {
		name  string
		given bool
	}{
		{"--ttl", o.ttl.Given}, {"--min-hold", o.minHold.Given}, {"--if-lost ignore", o.onLost == string(runner.Ignore)},
	} {
		if option.given {
			return console.Usagef("run", "%s: a lock of this source lasts for its period, no shorter and no longer, and its job ends with it; leave the option out", option.name)
		}
	}
	return nil
}

// settledBefore checks, without the lock, whether the job needs no run.
func (o *runOptions) settledBefore(ctx context.Context, e *Env, src *place.Source, plan *lockgroup.Plan) (settled bool, err error) {
	seen, err := lockgroup.Attempts{Source: src.Locks, Plan: plan}.Peek(ctx, o.Name)
	if err != nil || seen.Step == lockgroup.StepRun {
		return false, err
	}
	return true, o.skip(e, seen)
}

// runUnderLock acquires the lock. It does so again if the lock was lost before the job was started,
// because the host was suspended, and there is time left to wait.
func (o *runOptions) runUnderLock(ctx context.Context, e *Env, src *place.Source, sigs *console.Signals, plan *lockgroup.Plan, start time.Time) error {
	opt, err := o.options(e, src, "run")
	if err != nil {
		return err
	}
	opt.Command = o.shown
	a := acquisition{
		src: src, name: o.Name, shared: o.shared, slots: o.slots.Value, opt: opt, terms: termsOf(src, plan),
		token: e.Getenv("MULTILOCK_TOKEN"), notice: e.notices(o.Output),
	}
	for begin := time.Now(); ; {
		a.limit = o.wait.After(time.Since(begin))
		lock, slot, err := a.acquire(sigs.Until(ctx))
		if err != nil {
			return o.report(e, endingWithoutLock(o, o.refused(ctx, e, src, err)), sigs.Next(), func() {})
		}
		r := &jobRun{
			env: e, opt: o, src: src, lock: lock, slot: slot, signals: sigs, plan: plan, printed: &capturedOutput{},
			waited: time.Since(start), limit: o.wait.After(time.Since(begin)),
		}
		err = r.run(ctx)
		if !r.waitsAgain(err) {
			end := r.ending(err)
			return o.report(e, end, r.next, func() {
				if o.JSON && r.begun {
					r.printJSON(end)
				}
				r.printed.end(r.next, e, err)
				r.overrun.end()
			})
		}
		e.Say("lock %q was lost before the job was started; waiting on", r.lockName())
	}
}

// termsOf returns the terms of a job's lock.
func termsOf(src *place.Source, plan *lockgroup.Plan) func(multilock.Options) multilock.Terms {
	return func(opt multilock.Options) multilock.Terms {
		job := multilock.ForJob{Options: opt, LookFirst: src.Place.IsFiles()} // one of many hosts acquires it
		if plan == nil {
			return job
		}
		return multilock.Recurring{Terms: job, Every: plan.Period()}
	}
}

// refused records that another process holds the lock, and counts how often in a row.
func (o *runOptions) refused(ctx context.Context, e *Env, src *place.Source, err error) error {
	if !errors.Is(err, multilock.ErrHeld) {
		return err
	}
	var held *multilock.HeldError
	if o.failAfter.Given && errors.As(err, &held) {
		count, counted := countRefusal(ctx, src, held, o)
		if counted != nil {
			e.Say("--fail-after could not be counted: %v", counted)
		}
		if count >= o.failAfter.Value {
			return &console.CodedError{Code: console.ExitStarved, Text: fmt.Sprintf("refused %d times in a row by the same holder", count), Err: err}
		}
	}
	if console.ExitCode(err) == console.ExitHeld && o.heldCode.Value != console.ExitHeld {
		return &console.RefusedError{Code: o.heldCode.Value, Err: err}
	}
	return err
}

// refusalMemory is how far back failed acquisitions are counted.
const refusalMemory = 90 * 24 * time.Hour

// countRefusal records a failed acquisition, and returns how often in a row this host found the
// same holder. Healthy runs change the holder; one that stays hangs.
func countRefusal(ctx context.Context, src *place.Source, held *multilock.HeldError, o *runOptions) (int, error) {
	self := src.Self
	event := source.Event{
		Time: time.Now(), What: source.EventRefused, Name: o.Name, Token: held.Sighting.Record.Token, By: self,
		User: o.User, Command: o.shown, Holder: &held.Sighting.Record.Holder, Why: held.Sighting.Why,
	}
	journal, err := place.Ability[source.Journal](src, "run: --fail-after", source.TraitHistory)
	if err != nil {
		return 1, err
	}
	if err := journal.Record(ctx, []source.Event{event}); err != nil {
		return 1, err
	}
	count := 0
	for past, err := range reportLeftOut(journal.History(ctx, time.Now().Add(-refusalMemory)), func(string) {}) {
		switch {
		case err != nil:
			return 1, err
		case past.Name != o.Name:
		case past.What != source.EventRefused:
			count = 0
		case past.By.Host == self.Host && past.Token == event.Token:
			count++
		case past.By.Host == self.Host:
			count = 0
		}
	}
	return max(count, 1), nil
}
