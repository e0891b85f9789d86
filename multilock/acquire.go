package multilock

import (
	"context"
	"errors"
	"time"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// TryAcquire acquires the lock name unless a live process holds it. It does not wait for that process; the
// error is then a *HeldError. It does wait to find out whether a holder without heartbeats is dead: one and
// a half of that holder's heartbeat intervals after its TTL.
func TryAcquire(ctx context.Context, src Source, name string, t Terms) (*Lock, error) {
	return acquireAlone(ctx, src, name, t.terms(), ifFree)
}

// TryOnce makes one attempt at the lock name, and does not inspect the holder if that fails: the error is
// then ErrHeld, without details. This saves the inspection if the caller has other locks to try instead.
// TryOnce never takes over a dead holder's lock.
func TryOnce(ctx context.Context, src Source, name string, t Terms) (*Lock, error) {
	return acquireAlone(ctx, src, name, t.terms(), skipInspect)
}

// Acquire acquires the lock name, and waits for it until ctx ends. The error is then context.Cause(ctx),
// joined to a *HeldError that names the holder. It is ErrSelfWait if ctx comes from the lock's own Context,
// or from Do.
func Acquire(ctx context.Context, src Source, name string, t Terms) (*Lock, error) {
	return acquireAlone(ctx, src, name, t.terms(), wait)
}

// Do waits for the lock name, and runs work while it holds the lock. The context of work is cancelled when
// ctx is, or when the lock is lost; so a deadline of ctx also limits the work. To limit only the wait, use
// Acquire: the context of its Lock does not end with ctx.
//
// Do returns the error of Acquire, or that of work, joined to a *LostError if the lock was lost, or to the
// error of the release. If work calls Do or Acquire for the same lock with its context, it gets
// ErrSelfWait.
func Do(ctx context.Context, src Source, name string, t Terms, work func(context.Context) error) (err error) {
	lock, err := Acquire(ctx, src, name, t)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release(context.WithoutCancel(ctx))) }()
	under, cancel := context.WithCancelCause(withHeld(ctx, src, lock))
	defer cancel(nil)
	stop := context.AfterFunc(lock.Context(), func() { cancel(context.Cause(lock.Context())) })
	defer stop()
	return work(under)
}

type mode int

const (
	ifFree mode = iota
	wait
	skipInspect
)

// acquisition is one call of Acquire, TryAcquire or TryOnce.
type acquisition struct {
	name       string
	terms      terms
	mode       mode
	contender  source.Contender
	pacing     pacing
	inspection inspection
	late       int // times that the lock was acquired too late to be usable
	// trouble is the transient error of the last attempt, nil if it had another outcome.
	trouble error
}

// acquireName acquires the lock with exactly this name. It ignores readers, whose locks have other names:
// see acquireAlone.
func acquireName(ctx context.Context, src Source, name string, t terms, m mode) (*Lock, error) {
	pacing := newPacing(src, t.Options, m)
	t, err := t.check(m)
	if err := errors.Join(err, source.CheckEnds("lock name", name)); err != nil {
		return nil, err
	}
	if t.job {
		t.key = process.NewJobKey()
	}
	if m == wait {
		if err := checkSelfWait(ctx, src, name); err != nil {
			return nil, err
		}
	}
	if m == ifFree && t.lookFirst {
		if seen, err := Inspect(ctx, src, name, t.StalePolicy); err == nil && seen.State == StateHeld {
			return nil, &HeldError{Name: name, Observation: seen} // an attempt reports any other outcome
		}
	}
	return inTurn(ctx, src, name, t, func(ctx context.Context, _ terms) (*Lock, error) {
		return (&acquisition{name: name, terms: t, mode: m, pacing: pacing}).acquire(ctx, src)
	})
}

// acquire acquires the lock, or finds out why it cannot.
func (a *acquisition) acquire(ctx context.Context, src Source) (*Lock, error) {
	if err := a.enter(ctx, src); err != nil {
		return nil, err
	}
	if a.mode == wait {
		if err := a.pacing.begin(ctx, src, a); err != nil {
			return nil, a.abandon(ctx, err)
		}
	}
	lease, err := a.run(ctx)
	if err != nil {
		return nil, err
	}
	return newLock(ctx, src, a.name, lease, a.terms, a.pacing.turn), nil
}

// enter prepares the first attempt.
func (a *acquisition) enter(ctx context.Context, src Source) error {
	for {
		contender, err := within(ctx, src, func() (source.Contender, error) {
			return src.Contend(ctx, a.name, a.terms.claim(), a.terms.StalePolicy)
		}, discard[source.Contender])
		if err == nil {
			a.contender, a.trouble = contender, nil
			return nil
		}
		if !a.shouldRetry(err) {
			return a.explain(ctx, err)
		}
		if err := a.sleep(ctx); err != nil {
			return a.explain(ctx, err)
		}
	}
}

// run makes attempts until the lock is acquired, a live process holds it (unless this
// acquisition waits), or ctx ends. It closes the contender.
func (a *acquisition) run(ctx context.Context) (source.Lease, error) {
	for {
		lease, again, err := a.attempt(ctx)
		switch {
		case err != nil && !a.shouldRetry(err):
			return nil, a.abandon(ctx, err)
		case lease != nil:
			_ = a.contender.Close() // the lock is acquired even if this fails
			return lease, nil
		case again:
			continue
		}
		if err := a.sleep(ctx); err != nil {
			return nil, a.abandon(ctx, err)
		}
	}
}

// attempt makes one attempt, and inspects the lock if that fails. It reports whether to make
// another attempt at once.
func (a *acquisition) attempt(ctx context.Context) (lease source.Lease, again bool, err error) {
	lease, err = a.try(ctx)
	if err == nil && a.tooLate(lease) {
		return nil, a.mode == ifFree, giveBack(ctx, lease)
	}
	if err == nil {
		a.pacing.acquired()
	}
	if !errors.Is(err, ErrHeld) {
		return lease, false, err
	}
	a.pacing.refused = true
	if errors.Is(err, source.ErrSilent) {
		a.inspection.due = time.Time{}
	}
	again, err = a.afterRefusal(ctx)
	if err == nil {
		a.trouble = nil
	}
	return nil, again, err
}

// try calls the source once. If ctx ends while that call hangs, the lock is released when the call returns.
func (a *acquisition) try(ctx context.Context) (source.Lease, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return within(ctx, a.contender, func() (source.Lease, error) { return a.contender.Try(ctx) }, func(late source.Lease, err error) {
		if err == nil {
			_ = late.Release(context.WithoutCancel(ctx)) // if that fails, the TTL frees it
		}
		_ = a.contender.Close()
	})
}

// afterRefusal inspects the lock if an inspection is due, and breaks it if its holder is dead.
// It reports whether to make another attempt at once.
func (a *acquisition) afterRefusal(ctx context.Context) (again bool, err error) {
	if a.mode == skipInspect {
		return false, ErrHeld
	}
	if a.mode == wait && a.pacing.subscribe(a.contender) {
		return true, nil // the lock may have been released before the subscription
	}
	if time.Now().Before(a.inspection.due) {
		return false, nil
	}
	if err := context.Cause(ctx); err != nil {
		return false, err
	}
	return a.inspect(ctx)
}

// giveBack releases a lease that is not usable. If that fails, the lock is free after its TTL, so only the
// end of ctx is an error.
func giveBack(ctx context.Context, lease source.Lease) error {
	_, err := within(ctx, lease, func() (struct{}, error) {
		_ = lease.Release(ctx)
		_ = lease.Close()
		return struct{}{}, nil
	}, func(struct{}, error) {})
	return err
}

// tooLate reports whether a lock just acquired will expire within a heartbeat interval, because this
// process was stopped meanwhile: it would be lost before the work begins. A call that does not wait keeps
// the lock all the same if this happens repeatedly.
func (a *acquisition) tooLate(lease source.Lease) bool {
	if a.mode == skipInspect || !ends(lease).IsZero() {
		return false
	}
	left := a.terms.claim().Tenure() - lease.Since().Elapsed()
	if left > a.terms.heartbeat() {
		return false
	}
	a.late++
	return a.mode == wait || a.late < contradictedOnce
}

// shouldRetry reports whether to retry after an error, and passes it to the Trouble callback.
// It does not retry after an outcome in doubt.
func (a *acquisition) shouldRetry(err error) bool {
	if a.mode != wait || !errors.Is(err, ErrPassing) || errors.Is(err, ErrUnsure) {
		return false
	}
	a.trouble = err
	if a.terms.Trouble != nil {
		a.terms.Trouble(err)
	}
	return true
}

// sleep waits for the next attempt.
func (a *acquisition) sleep(ctx context.Context) error {
	pause := a.pacing.pauses.Next()
	if a.trouble == nil {
		pause = a.inspection.limit(pause)
	}
	return a.pacing.sleep(ctx, pause)
}

// abandon closes the contender after the acquisition failed with cause.
func (a *acquisition) abandon(ctx context.Context, cause error) error {
	return closeAfter(a.contender, a.explain(ctx, cause))
}

// explain adds to the end of ctx what prevented the acquisition until then, if that is known.
func (a *acquisition) explain(ctx context.Context, cause error) error {
	switch {
	case ctx.Err() == nil || !errors.Is(cause, context.Cause(ctx)):
		return cause
	case a.trouble != nil:
		return errors.Join(cause, a.trouble)
	case a.inspection.seen.State != StateFree:
		return errors.Join(cause, a.inspection.held(a.name))
	}
	return cause
}
