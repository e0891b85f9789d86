package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/runner"
	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// surroundings are the process and the lock source of a run.
type surroundings struct {
	env     *console.Env
	src     *place.Source
	signals *console.Signals
	hook    hookRunner
}

// run acquires the lock, runs the command under it, and reports how that ended.
func (q *request) run(ctx context.Context, e *Env, src *place.Source) error {
	if err := q.checkAbilities(src); err != nil {
		return err
	}
	q.warnOneHost(e, src)
	sigs := console.CatchSignals()
	console.OutliveReaders()
	defer sigs.Release()
	s := surroundings{env: e.Env, src: src, signals: sigs, hook: q.hooks.runner(e.Env)}
	if most := q.locking.jitter.Value; most > 0 {
		jitter := rand.N(most) //nolint:gosec // needs no secrecy
		if q.Verbose {
			e.Say("waiting %s (--jitter)", console.Short(jitter))
		}
		_ = bounded.Sleep(sigs.Until(ctx), jitter) // after a signal the lock is not acquired
	}
	start := time.Now()
	seen, err := lockgroup.Attempts{Source: src.Locks, Plan: q.plan}.Peek(ctx, q.Name)
	switch {
	case err != nil:
		return s.report(facts{request: q}.ending(err, nil), aftermath{})
	case seen.Step != lockgroup.StepRun:
		return s.report(facts{request: q, skipped: &seen}.ending(q.skipError(seen), nil), aftermath{})
	}
	a, err := q.locking.acquisition(e, src, "run", q.Output, e.Say)
	if err != nil {
		return err
	}
	a.slots, a.opt.Command, a.terms = q.locking.slots.Value, q.job.shown, termsOf(src, q.plan)
	return q.runUnder(ctx, s, start, a)
}

// runUnder acquires the lock and runs the command. It retries while there is time left to wait if the lock
// was lost before the job started, because the host was suspended.
func (q *request) runUnder(ctx context.Context, s surroundings, start time.Time, a acquisition) error {
	for begin := time.Now(); ; {
		a.limit = q.locking.wait.After(time.Since(begin))
		h, err := q.hold(ctx, s, a)
		if err != nil {
			return s.report(facts{request: q}.ending(err, nil), aftermath{})
		}
		h.waited = h.since.Sub(start)
		left := q.locking.wait.After(h.since.Sub(begin))
		r := newAttempts(s, q, h)
		end := r.run(ctx)
		lost := errors.Is(end.err, multilock.ErrLost) && !errors.Is(end.err, multilock.ErrOver)
		if end.started() || !lost || !left.Waits() {
			return s.report(end, r.aftermath)
		}
		s.env.Say("lock %q was lost before the job was started; waiting on", end.lockName())
	}
}

// checkAbilities rejects options that the source does not support.
func (q *request) checkAbilities(src *place.Source) error {
	ticks, option := q.plan != nil && !q.plan.Every.IsZero(), "--once"
	if ticks {
		option = "--every"
	}
	return cmp.Or(
		requireIf[source.Ledger](q.plan != nil, src, "run: "+option, source.TraitResults),
		requireIf[source.Timekeeper](ticks, src, "run: --every", source.TraitOneClock),
		requireIf[source.Journal](q.locking.failAfter.Given, src, "run: --fail-after", source.TraitHistory),
		requireIf[source.Queueing](q.locking.Fair, src, "run: --fair", source.TraitQueue),
		q.capture.group.check(src),
		q.checkTimed(src),
	)
}

// checkTimed rejects options that do not apply to a timed lock.
func (q *request) checkTimed(src *place.Source) error {
	if !src.Timed() {
		return nil
	}
	if q.locking.slots.Given {
		return src.Lacking("run: --slots", source.TraitPromptRelease)
	}
	for _, option := range []struct {
		name  string
		given bool
	}{
		{"--ttl", q.locking.TTL.Given}, {"--min-hold", q.job.minHold.Given}, {"--if-lost ignore", q.job.onLost == string(runner.Ignore)},
	} {
		if option.given {
			return console.Usagef("run", "%s: a lock of this source lasts for its period, no shorter and no longer, and its job ends with it; leave the option out", option.name)
		}
	}
	return nil
}

// termsOf returns the terms of a job's lock.
func termsOf(src *place.Source, plan *lockgroup.Plan) func(multilock.Options) multilock.Terms {
	return func(opt multilock.Options) multilock.Terms {
		// LookFirst, so that all but one of many hosts only read.
		job := multilock.ForJob{Options: opt, LookFirst: src.Place.IsFiles()}
		if plan == nil {
			return job
		}
		return multilock.Recurring{Terms: job, Every: plan.Period()}
	}
}

// hold acquires the lock or a slot. With --fail-after it records a failed acquisition, and returns a failure
// after that many in a row.
func (q *request) hold(ctx context.Context, s surroundings, a acquisition) (held, error) {
	lock, slot, err := a.acquire(s.signals.Until(ctx))
	if !errors.Is(err, multilock.ErrHeld) {
		return held{lock: lock, slot: slot, since: time.Now()}, err
	}
	var refused *multilock.HeldError
	if q.locking.failAfter.Given && errors.As(err, &refused) {
		count, counted := q.countRefusal(ctx, s.src, refused.Observation)
		if counted != nil {
			s.env.Say("--fail-after could not be counted: %v", counted)
		}
		if count >= q.locking.failAfter.Value {
			return held{}, &console.CodedError{Code: console.ExitStarved, Text: fmt.Sprintf("the same holder has kept the lock for %d attempts in a row; it may hang", count), Err: err}
		}
	}
	if console.ExitCode(err) == console.ExitHeld && q.locking.heldCode.Value != console.ExitHeld {
		err = &console.RefusedError{Code: q.locking.heldCode.Value, Err: err}
	}
	return held{}, err
}

// refusalMemory is the period in which failed acquisitions are counted.
const refusalMemory = 90 * 24 * time.Hour

// countRefusal records a failed acquisition, and returns how often in a row this host found the same holder.
// Healthy runs change the holder; a holder that stays has probably hung.
func (q *request) countRefusal(ctx context.Context, src *place.Source, seen multilock.Observation) (int, error) {
	event := source.Event{
		Time: time.Now(), What: source.EventRefused, Name: q.Name, Token: seen.Record.Token, By: src.Self,
		User: q.User, Command: q.job.shown, Holder: &seen.Record.Holder, Why: seen.Why,
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
		case past.Name != q.Name:
		case past.What != source.EventRefused:
			count = 0
		case past.By.Host == src.Self.Host && past.Token == event.Token:
			count++
		case past.By.Host == src.Self.Host:
			count = 0
		}
	}
	return max(count, 1), nil
}
