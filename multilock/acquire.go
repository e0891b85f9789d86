package multilock

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// TryAcquire takes the lock name if nobody alive holds it.
//
// It does not wait for a living holder: the error is then a *HeldError. It does
// take the time to make sure that a silent holder is dead: one and a half
// heartbeats of that holder once it has been silent for its TTL.
func TryAcquire(ctx context.Context, src Source, name string, opt Options) (*Lock, error) {
	return compete(ctx, src, name, opt, ifFree)
}

// TryOnce makes one attempt at the lock name, and does not look who is in the way
// if that fails: the error is then ErrHeld, and names nobody. It is for those who have other
// locks to try instead. It never takes a dead holder's lock over.
func TryOnce(ctx context.Context, src Source, name string, opt Options) (*Lock, error) {
	return compete(ctx, src, name, opt, blindly)
}

// Acquire takes the lock name, and waits for it as long as ctx allows. The error
// is context.Cause(ctx) if that ended first; a *HeldError joined to it says who
// was in the way. It is ErrSelfWait if ctx comes from the lock's own Context, or from Do.
func Acquire(ctx context.Context, src Source, name string, opt Options) (*Lock, error) {
	return compete(ctx, src, name, opt, wait)
}

// Do runs work while it holds the lock name, waiting for it first. The context
// that work gets is cancelled when ctx is, or when the lock is lost. Do returns
// the error of work, joined to a *LostError if the lock was lost, or to the
// error of the release. Work that calls Do or Acquire for the same lock with that context
// gets ErrSelfWait.
func Do(ctx context.Context, src Source, name string, opt Options, work func(context.Context) error) (err error) {
	lock, err := Acquire(ctx, src, name, opt)
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
	blindly
)

// contest is one call of Acquire or TryAcquire.
type contest struct {
	name      string
	opt       Options
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
	// maxTryPause bounds the pauses of a contest that was not asked to wait.
	maxTryPause = 20 * time.Millisecond
)

// contend takes the lock name, whoever may share it.
func contend(ctx context.Context, src Source, name string, opt Options, m mode) (*Lock, error) {
	pause := paceOf(src, opt)
	opt, err := opt.check()
	if err := errors.Join(err, source.CheckEnds("lock name", name)); err != nil {
		return nil, err
	}
	if opt.Job {
		opt.jobKey = process.NewJobKey()
	}
	if m == wait {
		if err := checkSelfWait(ctx, src, name); err != nil {
			return nil, err
		}
	}
	if m == ifFree && opt.LookFirst {
		if seen, err := Inspect(ctx, src, name, opt.Patience); err == nil && seen.State == StateHeld {
			return nil, &HeldError{Name: name, Sighting: seen} // what else there is to say, an attempt says
		}
	}
	if m == wait && opt.Fair {
		return InTurn(ctx, src, name, opt, func(ctx context.Context) (*Lock, error) {
			return fight(ctx, src, &contest{name: name, opt: opt, mode: m, pause: pause})
		})
	}
	return fight(ctx, src, &contest{name: name, opt: opt, mode: m, pause: pause})
}

// fight sees a contest to its end.
func fight(ctx context.Context, src Source, c *contest) (*Lock, error) {
	if c.mode == ifFree {
		c.pause = bounded.Pauses{First: firstPause, Limit: min(c.opt.Poll, maxTryPause)}
	}
	if err := c.enter(ctx, src); err != nil {
		return nil, err
	}
	if err := c.lineUp(ctx, src); err != nil {
		return nil, c.abandon(ctx, err)
	}
	lease, err := c.run(ctx)
	if err != nil {
		return nil, err
	}
	return newLock(ctx, src, c.name, lease, c.opt, c.turn), nil
}

// lineUp begins a wait.
func (c *contest) lineUp(ctx context.Context, src Source) error {
	if c.mode != wait {
		return nil
	}
	c.began = time.Now()
	if taking, ok := src.(source.TurnTaking); ok && !c.opt.Fair {
		if err := c.standBack(ctx, taking.Turns()); err != nil {
			return err
		}
	}
	if c.pause.Least < firstLook { // otherwise a look is due by then anyhow
		c.lookAt = time.Now().Add(firstLook)
	}
	return nil
}

// standBack leaves the lock to others for a while, if this process had it just now.
func (c *contest) standBack(ctx context.Context, turns *source.Turns) error {
	c.turn = turns.Of(c.name)
	c.pause.Expect(c.turn.Waits())
	back := c.turn.StandBack(maxBack * c.pause.Limit)
	if back == 0 {
		return nil
	}
	if turns.Prompt {
		if c.wake = c.contender.Wake(); c.wake != nil {
			back = min(back, promptBack)
		}
	}
	return bounded.Sleep(ctx, back)
}

// enter prepares the first attempt.
func (c *contest) enter(ctx context.Context, src Source) error {
	for {
		contender, err := within(ctx, func() (source.Contender, error) {
			return src.Contend(ctx, c.name, c.opt.claim(), c.opt.Patience)
		}, discard[source.Contender])
		if err == nil {
			c.contender, c.trouble = contender, nil
			return nil
		}
		if !c.bears(err) {
			return c.explain(ctx, err)
		}
		if err := c.sleep(ctx); err != nil {
			return c.explain(ctx, err)
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

// claim is what this process writes into the lock; the source adds who it is, unless
// the lock is for another one.
func (o Options) claim() source.Claim {
	if o.Command == "" {
		o.Command = filepath.Base(os.Args[0])
	}
	return source.Claim{Holder: Holder{Identity: o.Owner, User: o.User, Command: o.Command, Batch: o.Batch, Every: o.Every}, TTL: o.TTL, Heartbeat: o.heartbeat(), Job: o.Job, KeyDigest: o.jobKey.Digest()}
}

// run tries until the lock is taken, is held by somebody alive (unless this
// contest waits), or ctx ends. It closes the contender.
func (c *contest) run(ctx context.Context) (source.Lease, error) {
	for {
		lease, again, err := c.round(ctx)
		switch {
		case err != nil && !c.bears(err):
			return nil, c.abandon(ctx, err)
		case lease != nil:
			_ = c.contender.Close() // nothing is prepared any more, and the lock is taken whatever this says
			return lease, nil
		case again:
			continue
		}
		if err := c.sleep(ctx); err != nil {
			return nil, c.abandon(ctx, err)
		}
	}
}

// round is one attempt, and what follows if somebody is in the way. It reports whether
// to make another one at once.
func (c *contest) round(ctx context.Context) (lease source.Lease, again bool, err error) {
	lease, err = c.try(ctx)
	if err == nil && c.tooLate(lease) {
		return nil, c.mode == ifFree, giveBack(ctx, lease)
	}
	if err == nil && c.turn != nil {
		c.turn.Took(time.Since(c.began), c.refused)
	}
	if !errors.Is(err, ErrHeld) {
		return lease, false, err
	}
	c.refused = true
	if errors.Is(err, source.ErrSilent) {
		c.lookAt = time.Time{}
	}
	again, err = c.afterRefusal(ctx)
	if err == nil {
		c.trouble = nil
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
func (c *contest) tooLate(lease source.Lease) bool {
	if c.mode == blindly || !ends(lease).IsZero() {
		return false
	}
	left := c.opt.claim().Tenure() - lease.Since().Elapsed()
	if left > c.opt.heartbeat() {
		return false
	}
	c.stale++
	return c.mode == wait || c.stale < missedAtOnce
}

// bears says whether this contest waits for an error to pass, and tells of it. An outcome
// in doubt does not pass.
func (c *contest) bears(err error) bool {
	if c.mode != wait || !errors.Is(err, ErrPassing) || errors.Is(err, ErrUnsure) {
		return false
	}
	c.trouble = err
	if c.opt.Trouble != nil {
		c.opt.Trouble(err)
	}
	return true
}

// try makes one attempt. Should ctx end while the attempt hangs in the system
// below, the attempt is taken back whenever it comes out of there.
func (c *contest) try(ctx context.Context) (source.Lease, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return within(ctx, func() (source.Lease, error) { return c.contender.Try(ctx) }, func(late source.Lease, err error) {
		if err == nil {
			_ = late.Release(context.WithoutCancel(ctx)) // nobody is left to tell; the TTL frees it otherwise
		}
		_ = c.contender.Close()
	})
}

// afterRefusal looks who is in the way, if a look is due, and breaks what is
// dead. It reports whether to try again at once.
func (c *contest) afterRefusal(ctx context.Context) (again bool, err error) {
	if c.mode == blindly {
		return false, ErrHeld
	}
	if c.mode == wait && c.wake == nil {
		if c.wake = c.contender.Wake(); c.wake != nil {
			return true, nil // the lock may have been released before the channel was there
		}
	}
	if time.Now().Before(c.lookAt) {
		return false, nil
	}
	if err := context.Cause(ctx); err != nil {
		return false, err
	}
	seen, err := ask(ctx, c.contender, c.contender.Look)
	if err != nil {
		return false, err
	}
	c.seen, c.seenAt = seen, time.Now()
	c.lookAt = c.seenAt.Add(c.seen.Next)
	switch c.seen.State {
	case StateFree:
		return c.elusive()
	case StateDead:
		if err := c.breakDead(ctx); err != nil {
			return false, err
		}
		return c.elusive()
	case StateHeld:
		if c.mode == ifFree {
			return false, c.held()
		}
		if c.opt.Refuse != nil && c.mode == wait {
			if err := c.opt.Refuse(c.seen.Record); err != nil {
				return false, err
			}
		}
		if c.seen.Age != source.Unknown && c.seen.Age < time.Since(c.began) {
			c.pause.Slow() // somebody has got it since, so others wait, too, or come as often
		}
	case StateSuspect: // both stances see it through
	}
	c.missed = 0
	return false, nil
}

// elusive reports whether to try again without a pause after a look that found
// nobody alive.
func (c *contest) elusive() (again bool, err error) {
	c.missed++
	if c.missed >= missedAtAll && c.mode == ifFree {
		c.seen.Why = "it changes hands faster than one can look at it"
		return false, c.held()
	}
	return c.missed < missedAtOnce, nil
}

// held says who is in the way, and for how long by now: the last look may be seconds old.
func (c *contest) held() error {
	seen := c.seen
	if seen.Age != source.Unknown {
		seen.Age += time.Since(c.seenAt)
	}
	return &HeldError{Name: c.name, Sighting: seen}
}

// breakDead breaks the lock whose holder the last look called dead. That it came
// back to life meanwhile is no error of ours: the next look will show it.
func (c *contest) breakDead(ctx context.Context) error {
	c.lookAt = time.Time{}
	err := tell(ctx, c.contender, c.contender.Break)
	if errors.Is(err, ErrHeld) {
		return nil
	}
	return err
}

// sleep waits for the next attempt: a jittered pause, cut short by a wake-up or
// by the next look that is due.
func (c *contest) sleep(ctx context.Context) error {
	woken, err := bounded.Wait(ctx, c.nextPause(), c.wake)
	if !woken || err != nil {
		return err
	}
	c.pause.Reset()
	return bounded.Sleep(ctx, time.Duration(c.pause.Early()*float64(afterYou)))
}

func (c *contest) nextPause() time.Duration {
	pause, due := c.pause.Next(), max(time.Until(c.lookAt), 0)
	switch {
	case c.trouble != nil:
		return pause
	case c.missed > 0:
		return pause // a look is always due then, and shows nothing new
	case c.seen.State == StateSuspect:
		return due
	case pause <= DefaultPoll:
		return pause // a look can wait for the next attempt, and an idle waiter sleeps longer
	}
	return min(pause, due)
}

// abandon closes the contender after the contest failed with cause.
func (c *contest) abandon(ctx context.Context, cause error) error {
	return closeAfter(c.contender, c.explain(ctx, cause))
}

// explain adds to the end of ctx what was in the way until then, as far as that is known.
func (c *contest) explain(ctx context.Context, cause error) error {
	switch {
	case ctx.Err() == nil || !errors.Is(cause, context.Cause(ctx)):
		return cause
	case c.trouble != nil:
		return errors.Join(cause, c.trouble)
	case c.seen.State != StateFree:
		return errors.Join(cause, c.held())
	}
	return cause
}
