package multilock

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// TryAcquire takes the lock name unless a live process holds it. It does not wait for that
// process; the error is then a *HeldError. It does take the time to find out whether a
// silent holder is dead: one and a half of that holder's heartbeats after its TTL.
func TryAcquire(ctx context.Context, src Source, name string, t Terms) (*Lock, error) {
	return acquireAlone(ctx, src, name, t.terms(), ifFree)
}

// TryOnce makes one attempt at the lock name, and does not inspect the holder if that
// fails: the error is then ErrHeld, without details. A caller with other locks to try
// instead saves the inspection. TryOnce never takes over a dead holder's lock.
func TryOnce(ctx context.Context, src Source, name string, t Terms) (*Lock, error) {
	return acquireAlone(ctx, src, name, t.terms(), skipInspect)
}

// Acquire takes the lock name, and waits for it until ctx ends. The error is then
// context.Cause(ctx), joined to a *HeldError that names the holder. It is ErrSelfWait if ctx
// comes from the lock's own Context, or from Do.
func Acquire(ctx context.Context, src Source, name string, t Terms) (*Lock, error) {
	return acquireAlone(ctx, src, name, t.terms(), wait)
}

// Do waits for the lock name, and runs work while it holds the lock. The context of work is
// cancelled when ctx is, or when the lock is lost. Do returns the error of work, joined to a
// *LostError if the lock was lost, or to the error of the release. Work that calls Do or
// Acquire for the same lock with that context gets ErrSelfWait.
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
	name      string
	terms     terms
	mode      mode
	contender source.Contender
	wake      <-chan struct{}
	pause     bounded.Pauses
	seen      Sighting     // the last look, zero before the first
	seenAt    time.Time    // when that was
	lookAt    time.Time    // when the next look is due
	missed    int          // looks in a row that called the lock free or dead, between attempts that found it held
	turn      *source.Turn // what this process remembers of its turns at this lock, nil if nothing
	began     time.Time
	refused   bool // an attempt was, before a turn of others
	stale     int  // times that the lock was had too late
	// trouble is what keeps the source from doing its part, and may pass; nil if it does.
	trouble error
}

// firstLook is how long a waiter leaves a lock alone that changes hands quickly
// before it looks who holds it: attempts are cheap, looks are not.
const firstLook = 50 * time.Millisecond

// maxBack bounds for how many of the longest pauses one stands back; promptBack is enough
// where others learn at once that the lock is free.
const (
	maxBack    = 4
	promptBack = 200 * time.Microsecond
	// afterYou is how much later than others one acts on such news who expects to wait
	// for longer than he has.
	afterYou = 500 * time.Microsecond
)

// firstPause bounds the first pause of all.
const firstPause = 2 * time.Millisecond

// A lock that is free at every look and held at every attempt changes hands
// quickly, or the source contradicts itself: then do not spin, and do not go on
// for ever without being asked to wait.
const (
	missedAtOnce = 3
	missedAtAll  = 50
	// maxTryPause bounds the pauses of an acquisition that was not asked to wait.
	maxTryPause = 20 * time.Millisecond
)

// acquireName takes the lock with exactly this name. It ignores readers, which have names of
// their own: see acquireAlone.
func acquireName(ctx context.Context, src Source, name string, t terms, m mode) (*Lock, error) {
	pause := paceOf(src, t.Options)
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
		if seen, err := Inspect(ctx, src, name, t.Patience); err == nil && seen.State == StateHeld {
			return nil, &HeldError{Name: name, Sighting: seen} // an attempt reports any other outcome
		}
	}
	return inTurn(ctx, src, name, t, func(ctx context.Context, _ terms) (*Lock, error) {
		return (&acquisition{name: name, terms: t, mode: m, pause: pause}).acquire(ctx, src)
	})
}

// acquire takes the lock, or finds out why it cannot.
func (a *acquisition) acquire(ctx context.Context, src Source) (*Lock, error) {
	if a.mode == ifFree {
		a.pause = bounded.Pauses{First: firstPause, Limit: min(a.terms.Poll, maxTryPause)}
	}
	if err := a.enter(ctx, src); err != nil {
		return nil, err
	}
	if err := a.lineUp(ctx, src); err != nil {
		return nil, a.abandon(ctx, err)
	}
	lease, err := a.run(ctx)
	if err != nil {
		return nil, err
	}
	return newLock(ctx, src, a.name, lease, a.terms, a.turn), nil
}

// lineUp begins a wait.
func (a *acquisition) lineUp(ctx context.Context, src Source) error {
	if a.mode != wait {
		return nil
	}
	a.began = time.Now()
	if taking, ok := src.(source.TurnTaking); ok && !a.terms.Fair {
		if err := a.standBack(ctx, taking.Turns()); err != nil {
			return err
		}
	}
	if a.pause.Least < firstLook { // otherwise a look is due by then anyhow
		a.lookAt = time.Now().Add(firstLook)
	}
	return nil
}

// standBack leaves the lock to others for a while, if this process had it just now.
func (a *acquisition) standBack(ctx context.Context, turns *source.Turns) error {
	a.turn = turns.Of(a.name)
	a.pause.Expect(a.turn.Waits())
	back := a.turn.StandBack(maxBack * a.pause.Limit)
	if back == 0 {
		return nil
	}
	if turns.Prompt {
		if a.wake = a.contender.Wake(); a.wake != nil {
			back = min(back, promptBack)
		}
	}
	return bounded.Sleep(ctx, back)
}

// enter prepares the first attempt.
func (a *acquisition) enter(ctx context.Context, src Source) error {
	for {
		contender, err := within(ctx, func() (source.Contender, error) {
			return src.Contend(ctx, a.name, a.terms.claim(), a.terms.Patience)
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

// paceOf is how long to wait between two attempts: as the caller wants it, or else
// the source.
func paceOf(src Source, opt Options) bounded.Pauses {
	if paced, ok := src.(source.Paced); ok && opt.Poll == 0 {
		least, most := paced.Pace()
		return bounded.Pauses{Least: least, Limit: most}
	}
	return bounded.Pauses{First: firstPause, Limit: cmp.Or(opt.Poll, DefaultPoll)}
}

// run tries until the lock is taken, is held by somebody alive (unless this
// acquisition waits), or ctx ends. It closes the contender.
func (a *acquisition) run(ctx context.Context) (source.Lease, error) {
	for {
		lease, again, err := a.round(ctx)
		switch {
		case err != nil && !a.shouldRetry(err):
			return nil, a.abandon(ctx, err)
		case lease != nil:
			_ = a.contender.Close() // nothing is prepared any more, and the lock is taken whatever this says
			return lease, nil
		case again:
			continue
		}
		if err := a.sleep(ctx); err != nil {
			return nil, a.abandon(ctx, err)
		}
	}
}

// round is one attempt, and what follows if somebody is in the way. It reports whether
// to make another one at once.
func (a *acquisition) round(ctx context.Context) (lease source.Lease, again bool, err error) {
	lease, err = a.try(ctx)
	if err == nil && a.tooLate(lease) {
		return nil, a.mode == ifFree, giveBack(ctx, lease)
	}
	if err == nil && a.turn != nil {
		a.turn.Took(time.Since(a.began), a.refused)
	}
	if !errors.Is(err, ErrHeld) {
		return lease, false, err
	}
	a.refused = true
	if errors.Is(err, source.ErrSilent) {
		a.lookAt = time.Time{}
	}
	again, err = a.afterRefusal(ctx)
	if err == nil {
		a.trouble = nil
	}
	return nil, again, err
}

// giveBack releases a lease that is of no use. If that fails the lock is silent, and free
// after its TTL; only the end of ctx is an error.
func giveBack(ctx context.Context, lease source.Lease) error {
	_, err := within(ctx, func() (struct{}, error) {
		_ = lease.Release(ctx)
		_ = lease.Close()
		return struct{}{}, nil
	}, func(struct{}, error) {})
	return err
}

// tooLate says that less than a heartbeat is left of the belief in a lock that was just
// acquired: this process stood still meanwhile. It would be lost before anything began.
// One who does not wait has it all the same if that happens again and again.
func (a *acquisition) tooLate(lease source.Lease) bool {
	if a.mode == skipInspect || !ends(lease).IsZero() {
		return false
	}
	left := a.terms.claim().Tenure() - lease.Since().Elapsed()
	if left > a.terms.heartbeat() {
		return false
	}
	a.stale++
	return a.mode == wait || a.stale < missedAtOnce
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

// try makes one attempt. Should ctx end while the attempt hangs in the system
// below, the attempt is taken back whenever it comes out of there.
func (a *acquisition) try(ctx context.Context) (source.Lease, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return within(ctx, func() (source.Lease, error) { return a.contender.Try(ctx) }, func(late source.Lease, err error) {
		if err == nil {
			_ = late.Release(context.WithoutCancel(ctx)) // nobody is left to tell; the TTL frees it otherwise
		}
		_ = a.contender.Close()
	})
}

// afterRefusal looks who is in the way, if a look is due, and breaks what is
// dead. It reports whether to try again at once.
func (a *acquisition) afterRefusal(ctx context.Context) (again bool, err error) {
	if a.mode == skipInspect {
		return false, ErrHeld
	}
	if a.mode == wait && a.wake == nil {
		if a.wake = a.contender.Wake(); a.wake != nil {
			return true, nil // the lock may have been released before the channel was there
		}
	}
	if time.Now().Before(a.lookAt) {
		return false, nil
	}
	if err := context.Cause(ctx); err != nil {
		return false, err
	}
	seen, err := ask(ctx, a.contender, a.contender.Look)
	if err != nil {
		return false, err
	}
	a.seen, a.seenAt = seen, time.Now()
	a.lookAt = a.seenAt.Add(a.seen.Next)
	switch a.seen.State {
	case StateFree:
		return a.elusive()
	case StateDead:
		if err := a.breakDead(ctx); err != nil {
			return false, err
		}
		return a.elusive()
	case StateHeld:
		if a.mode == ifFree {
			return false, a.held()
		}
		if a.terms.Refuse != nil && a.mode == wait {
			if err := a.terms.Refuse(a.seen.Record); err != nil {
				return false, err
			}
		}
		if a.seen.Age != source.Unknown && a.seen.Age < time.Since(a.began) {
			a.pause.Slow() // somebody has got it since, so others wait, too, or come as often
		}
	case StateSuspect: // both stances see it through
	}
	a.missed = 0
	return false, nil
}

// elusive reports whether to try again without a pause after a look that found
// nobody alive.
func (a *acquisition) elusive() (again bool, err error) {
	a.missed++
	if a.missed >= missedAtAll && a.mode == ifFree {
		a.seen.Why = "it changes hands faster than one can look at it"
		return false, a.held()
	}
	return a.missed < missedAtOnce, nil
}

// held says who is in the way, and for how long by now: the last look may be seconds old.
func (a *acquisition) held() error {
	seen := a.seen
	if seen.Age != source.Unknown {
		seen.Age += time.Since(a.seenAt)
	}
	return &HeldError{Name: a.name, Sighting: seen}
}

// breakDead breaks the lock whose holder the last look called dead. That it came
// back to life meanwhile is no error of ours: the next look will show it.
func (a *acquisition) breakDead(ctx context.Context) error {
	a.lookAt = time.Time{}
	err := tell(ctx, a.contender, a.contender.Break)
	if errors.Is(err, ErrHeld) {
		return nil
	}
	return err
}

// sleep waits for the next attempt: a jittered pause, cut short by a wake-up or
// by the next look that is due.
func (a *acquisition) sleep(ctx context.Context) error {
	woken, err := bounded.Wait(ctx, a.nextPause(), a.wake)
	if !woken || err != nil {
		return err
	}
	a.pause.Reset()
	return bounded.Sleep(ctx, time.Duration(a.pause.Early()*float64(afterYou)))
}

func (a *acquisition) nextPause() time.Duration {
	pause, due := a.pause.Next(), max(time.Until(a.lookAt), 0)
	switch {
	case a.trouble != nil:
		return pause
	case a.missed > 0:
		return pause // a look is always due then, and shows nothing new
	case a.seen.State == StateSuspect:
		return due
	case pause <= DefaultPoll:
		return pause // a look can wait for the next attempt, and an idle waiter sleeps longer
	}
	return min(pause, due)
}

// abandon closes the contender after the acquisition failed with cause.
func (a *acquisition) abandon(ctx context.Context, cause error) error {
	return closeAfter(a.contender, a.explain(ctx, cause))
}

// explain adds to the end of ctx what was in the way until then, as far as that is known.
func (a *acquisition) explain(ctx context.Context, cause error) error {
	switch {
	case ctx.Err() == nil || !errors.Is(cause, context.Cause(ctx)):
		return cause
	case a.trouble != nil:
		return errors.Join(cause, a.trouble)
	case a.seen.State != StateFree:
		return errors.Join(cause, a.held())
	}
	return cause
}
