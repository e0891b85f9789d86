package multilock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// Lock is a lock that this process acquired. A keeper renews it until Release. Always call Release, even
// after a loss. Methods are safe for concurrent use.
type Lock struct {
	name     string
	jobKey   process.JobKey // "" without a job
	lease    source.Lease
	validity time.Duration
	margin   time.Duration    // from the end of the validity until others may acquire the lock
	ends     boottime.Instant // when a timed lock expires; zero if the lock is renewed
	ctx      context.Context  //nolint:containedctx // the lock's own lifetime, handed out by Context
	cancel   context.CancelCauseFunc
	keeper   *keeper
	shared   bool         // it is one reader's part of a shared lock
	turn     *source.Turn // is notified of the release; may be nil
	taken    time.Time

	releasing sync.Mutex // one Release at a time; guards giving
	giving    chan error // the outcome of a release in progress, nil if there is none
	mu        sync.Mutex
	leaving   bool             // Release has begun
	good      boottime.Instant // start of the last confirmed renewal
	renewed   chan struct{}    // closed when good changes; nil until it is asked for
	lost      *LostError
	released  bool
}

func newLock(ctx context.Context, src Source, name string, lease source.Lease, t terms, turn *source.Turn) *Lock {
	l := &Lock{name: name, turn: turn, jobKey: t.key, taken: time.Now(), lease: lease, validity: t.claim().Tenure(), ends: ends(lease), good: lease.Since()}
	if l.ends.IsZero() {
		l.margin = t.TTL - l.validity
	}
	l.ctx, l.cancel = context.WithCancelCause(withHeld(context.WithoutCancel(ctx), src, l))
	beat := t.heartbeat()
	if !l.ends.IsZero() {
		beat = min(beat, max(l.left()/10, time.Millisecond)) // the source sets the time, not the terms
	}
	if beat > 0 {
		l.keeper = startKeeper(l, beat)
	}
	return l
}

// ends is when a timed lease expires, zero if it is not timed.
func ends(lease source.Lease) boottime.Instant {
	if timed, ok := lease.(source.Timed); ok {
		return timed.Ends()
	}
	return boottime.Instant{}
}

// Context is cancelled when the lock is lost, with a *LostError as its cause, or released, with
// ErrReleased. It carries the values of the context given to Acquire, but not its end, which only limited
// the wait.
func (l *Lock) Context() context.Context { return l.ctx }

// Record is what others can read about the lock.
func (l *Lock) Record() source.Record { return l.lease.Record() }

// Age is the time since the lock was acquired.
func (l *Lock) Age() time.Duration { return time.Since(l.taken) }

// Remaining is how long the lock stays valid if no renewal succeeds from now on: zero once it is lost. It
// counts suspended time.
func (l *Lock) Remaining() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost != nil || l.released {
		return 0
	}
	return max(l.left(), 0)
}

// Grace is the time left to end a job: until other processes may acquire the lock, if no renewal succeeds
// meanwhile. Once the lock is lost it is at most a fifth of the TTL, because a forced break ignores the
// TTL. It is zero when that time has passed, for a timed lock that is over, and after Release. It counts
// suspended time.
func (l *Lock) Grace() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	left := max(l.left()+l.margin, 0)
	switch {
	case l.released:
		return 0
	case l.lost != nil:
		return min(left, l.margin)
	}
	return left
}

// Deadline is the time until which a lock is valid if it is not renewed any more.
type Deadline struct {
	// Until is when the holder has to stop, Others when other processes may acquire the lock.
	Until, Others boottime.Instant
	// Renewed is closed when a renewal has moved both. It is never closed once the lock is lost or
	// released, nor for a Timed lock.
	Renewed <-chan struct{}
}

// Deadline returns Remaining and Grace as instants, for a process that watches the work under the lock in
// place of this one. After a forced break others may acquire the lock earlier.
func (l *Lock) Deadline() Deadline {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.renewed == nil {
		l.renewed = make(chan struct{})
	}
	until := l.ends
	if until.IsZero() {
		until = l.good.Add(l.validity)
	}
	return Deadline{Until: until, Others: until.Add(l.margin), Renewed: l.renewed}
}

// Timed reports whether the lock ends at a fixed time, Remaining from now, and is not renewed.
func (l *Lock) Timed() bool { return !l.ends.IsZero() }

// left is what remains of the lock's validity.
func (l *Lock) left() time.Duration {
	if !l.ends.IsZero() {
		return -l.ends.Elapsed()
	}
	return l.validity - l.good.Elapsed()
}

// Verify checks with the source that the lock is held. The error is a *LostError if it is lost, ErrReleased
// after Release, and any other if the source cannot answer.
func (l *Lock) Verify(ctx context.Context) error {
	if err := l.usable(); err != nil {
		return err
	}
	_, err := within(ctx, nil, func() (struct{}, error) { return struct{}{}, l.renew(ctx) }, func(struct{}, error) {})
	return err
}

// Fence returns a fencing token for this acquisition: a number larger than any that an earlier holder of
// this name got. Each call returns a larger one. The error is ErrUnsupported if the source has no tokens,
// or for a reader of a shared lock, whose numbers would not be those of the lock; otherwise as for Verify.
func (l *Lock) Fence(ctx context.Context) (uint64, error) {
	if l.shared {
		return 0, ErrUnsupported
	}
	number, err := underLock(ctx, l, func() (uint64, error) { return l.lease.Fence(ctx) })
	if ended := l.usable(); ended != nil {
		return 0, ended // it took so long that a later holder may already have got a number
	}
	return number, err
}

// JobEnviron is what the processes of a job under the lock need in their environment: the last entry, which
// is secret, identifies them (ForJob).
func (l *Lock) JobEnviron() []string {
	entries := []string{process.TokenEntry(l.Record().Token)}
	if l.jobKey != "" {
		entries = append(entries, l.jobKey.Entry())
	}
	return entries
}

// MarkJob records the process groups that work under the lock, at most source.MaxGroups, in place of those
// recorded before. While a process of one of them lives, the holder counts as alive on this host even if
// this process dies. A call without groups clears the record; make it between the end of one job and the
// start of the next. The error is ErrUnsupported if the source has no such record, otherwise as for Verify.
func (l *Lock) MarkJob(ctx context.Context, jobs ...process.Group) error {
	if len(jobs) > source.MaxGroups {
		why := fmt.Sprintf("at most %d can be noted in a lock", source.MaxGroups)
		return &source.InvalidError{What: "number of process groups", Got: strconv.Itoa(len(jobs)), Why: why}
	}
	_, err := underLock(ctx, l, func() (struct{}, error) { return struct{}{}, l.lease.MarkJob(ctx, jobs...) })
	return err
}

// underLock makes a call about the lease while the lock is held, as far as this process knows.
func underLock[T any](ctx context.Context, l *Lock, call func() (T, error)) (T, error) {
	var none T
	if err := l.usable(); err != nil {
		return none, err
	}
	value, err := within(ctx, l.lease, call, func(T, error) {})
	if errors.Is(err, ErrLost) {
		err = l.missing(err)
	}
	return value, err
}

// Release releases the lock, after it has stopped the keeper. The error is a *LostError if the lock was
// lost before, ErrReleased after an earlier success, and joined to ErrUnsure if ctx ended before the source
// confirmed; in that case the lock is free after its TTL at the latest, and Release may be called again. If
// ctx has already ended, as in a deferred call after a signal, the source still gets a few seconds.
func (l *Lock) Release(ctx context.Context) error {
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), leaving)
		defer cancel()
	}
	l.releasing.Lock()
	defer l.releasing.Unlock()
	if l.isReleased() {
		return ErrReleased
	}
	if l.keeper != nil {
		l.keeper.halt()
	}
	l.leave()
	err := l.give(ctx)
	switch {
	case err == nil, errors.Is(err, ErrReleased):
	case errors.Is(err, ErrLost):
		err = l.lose(err)
	default:
		return errors.Join(ErrUnsure, err)
	}
	return l.finish(err)
}

func (l *Lock) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leaving = true
}

// give asks the source to release the lock, one call at a time: of two concurrent calls, one would find the
// lock gone, and report a break. So it waits for a call that an earlier Release left running, and repeats
// it only if it failed.
func (l *Lock) give(ctx context.Context) error {
	if l.giving == nil && (ctx.Done() == nil || local(l.lease)) {
		return l.lease.Release(ctx)
	}
	for {
		earlier := l.giving != nil
		if !earlier {
			l.giving = l.startGiving(ctx)
		}
		select {
		case err := <-l.giving:
			l.giving = nil
			if !earlier || err == nil || errors.Is(err, ErrLost) || errors.Is(err, ErrReleased) {
				return err
			}
		case <-ctx.Done():
			return &hungError{cause: context.Cause(ctx)}
		}
	}
}

func (l *Lock) startGiving(ctx context.Context) chan error {
	outcome := make(chan error, 1)
	go func() { outcome <- l.lease.Release(ctx) }()
	return outcome
}

// Detach ends the keeper and leaves the lock held until its TTL has passed.
func (l *Lock) Detach() error {
	l.releasing.Lock()
	defer l.releasing.Unlock()
	if l.isReleased() {
		return ErrReleased
	}
	if l.keeper != nil {
		l.keeper.halt()
	}
	err := l.lease.Close()
	_ = l.setReleased()
	return err
}

// finish marks the lock as released. A lock whose validity was over counts as lost even if it was still
// there to release: the holder had to stop before.
func (l *Lock) finish(err error) error {
	if l.turn != nil {
		l.turn.Gave(time.Since(l.taken))
	}
	lost := l.setReleased()
	if err == nil && lost != nil {
		return lost
	}
	return err
}

func (l *Lock) setReleased() *LostError {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.released = true
	if l.lost == nil && l.left() <= 0 && l.keeper != nil {
		l.lost = l.expired()
	}
	if l.lost != nil {
		l.cancel(l.lost)
	}
	l.cancel(ErrReleased)
	return l.lost
}

func (l *Lock) isReleased() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.released
}

// usable reports whether the lock is valid, by this process's own clock.
func (l *Lock) usable() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.released {
		return ErrReleased
	}
	if l.lost == nil && l.left() <= 0 {
		l.loseLocked(nil)
	}
	if l.lost != nil {
		return l.lost
	}
	return nil
}

// renew sends one heartbeat. It may hang; nothing waits for it.
func (l *Lock) renew(ctx context.Context) error {
	start := boottime.Now()
	err := l.lease.Renew(ctx)
	if errors.Is(err, ErrLost) {
		return l.missing(err)
	}
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost == nil && l.left() <= 0 {
		// It returned too late: the loss has been reported, or is about to be.
		l.loseLocked(nil)
	}
	if l.lost != nil {
		return l.lost
	}
	l.good = start
	if l.renewed != nil {
		close(l.renewed)
		l.renewed = nil
	}
	return nil
}

// missing handles a call that found the lock gone. If Release has begun, the release is the cause, and
// Release reports whether it came too late.
func (l *Lock) missing(cause error) error {
	l.mu.Lock()
	leaving := l.leaving
	l.mu.Unlock()
	if leaving {
		return ErrReleased
	}
	return l.lose(cause)
}

func (l *Lock) lose(cause error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost == nil || l.lost.Err == nil { // a report from the source outranks a missed deadline
		l.loseLocked(cause)
	}
	return l.lost
}

func (l *Lock) loseLocked(cause error) {
	var reported *LostError
	if errors.As(cause, &reported) && reported.Err != nil {
		cause = reported.Err // the source's reason; we know better for how long there was no heartbeat
	}
	l.lost = l.expired()
	if cause != nil {
		l.lost.Err = cause
	}
	l.cancel(l.lost)
}

// expired is the loss of a lock whose validity is over.
func (l *Lock) expired() *LostError {
	lost := &LostError{Name: l.name, Silence: l.good.Elapsed()}
	if !l.ends.IsZero() {
		lost.Err = ErrOver
	}
	return lost
}
