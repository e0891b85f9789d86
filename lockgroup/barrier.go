package lockgroup

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// BarrierOptions configure a barrier.
type BarrierOptions struct {
	// Members are the names that must each have a final result. The source must be a
	// source.Ledger. The barrier may start before any of the jobs.
	Members []string
	// Expect is how many names must have a final result; the group must then also be empty. The
	// source must be a source.Ledger. With neither Members nor Expect, the barrier opens when the
	// group is empty.
	Expect int
	// Settle is how long the group must stay empty if the barrier has seen no holder, to wait for jobs
	// that are just starting. With 0 one empty poll is enough. Not used with Members or Expect.
	Settle time.Duration
	// Since bounds how long before Wait a job may have ended, by its host's clock, to be reported;
	// DefaultSince if 0. Not used with Members or Expect.
	Since time.Duration
	// StalePolicy decides when a holder is dead.
	StalePolicy multilock.StalePolicy
	// Poll is the longest pause between two polls, multilock.DefaultPoll if 0.
	Poll time.Duration
	// Inspect is the longest pause between two inspections of the holders, DefaultInspect if 0.
	// Holders with a short TTL are inspected more often.
	Inspect time.Duration
	// Takeover is how long to wait for another host to take over the job of a dead holder while no
	// other awaited job is held: three TTLs of the holder if 0, for ever if negative. Only for
	// Members and Expect.
	Takeover time.Duration
	// Died, if not nil, is called with each dead holder as soon as it is found.
	Died func(Holding)
}

// DefaultInspect is the default of BarrierOptions.Inspect.
const DefaultInspect = 30 * time.Second

// ErrNotDone means that a barrier has opened and a job failed or died.
var ErrNotDone = errors.New("not all jobs have succeeded")

// Barrier waits for the jobs of a group. A poll costs one request. The only state of other processes
// that Wait removes is the lock of a dead holder.
type Barrier struct {
	src     source.Group
	opt     BarrierOptions
	results *results // nil if the barrier waits for an empty group
	holders *holders
	start   time.Time
	busy    bool // a poll found the group not empty

	mu     sync.Mutex
	ends   *ends // read from the history when the barrier opened
	untold error // why the history is incomplete, nil if it is not
}

// NewBarrier prepares a barrier for one Wait. The error is a *source.InvalidError for contradictory
// options, and multilock.ErrUnsupported for Members or Expect with a source that keeps no results.
func NewBarrier(src source.Group, opt BarrierOptions) (*Barrier, error) {
	if err := opt.check(); err != nil {
		return nil, err
	}
	if opt.Poll == 0 {
		opt.Poll = multilock.DefaultPoll
	}
	if opt.Since == 0 {
		opt.Since = DefaultSince
	}
	if opt.Inspect == 0 {
		opt.Inspect = DefaultInspect
	}
	b := &Barrier{src: src, opt: opt, holders: newHolders(src, opt.StalePolicy, opt.Died)}
	if len(opt.Members) == 0 && opt.Expect == 0 {
		return b, nil
	}
	ledger, ok := src.(source.Ledger)
	if !ok {
		return nil, fmt.Errorf("a barrier for members: %w: it keeps no results of jobs", multilock.ErrUnsupported)
	}
	b.results = newResults(ledger, opt.Members)
	return b, nil
}

func (o *BarrierOptions) check() error {
	switch {
	case len(o.Members) > 0 && o.Expect != 0:
		return &source.InvalidError{What: "expect", Got: strconv.Itoa(o.Expect), Why: "the members are named, so their number is known"}
	case o.Expect < 0:
		return &source.InvalidError{What: "expect", Got: strconv.Itoa(o.Expect), Why: "must be positive"}
	case o.Poll < 0, o.Inspect < 0, o.Settle < 0, o.Since < 0:
		return &source.InvalidError{What: "duration", Got: min(o.Poll, o.Inspect, o.Settle, o.Since).String(), Why: "must be positive"}
	}
	return nil
}

// Wait returns when the barrier opens. The error is nil if everything is done; ErrNotDone if a job
// failed, or died and was not taken over; context.Cause(ctx) if ctx ended first; any other error if
// the source failed. The report is valid in every case, as far as it goes.
//
// Without Members and Expect the barrier opens at the first moment at which nothing is held, and
// knows nothing of jobs that have not started yet. It then reads from the source's history how the
// jobs ended: the last run of each name since Since counts. See Report.Unread for sources with an
// incomplete history.
func (b *Barrier) Wait(ctx context.Context) (Report, error) {
	b.start = time.Now()
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var looking sync.WaitGroup
	looking.Go(func() { b.inspect(inner, cancel) })
	err := b.poll(inner)
	cancel(nil)
	looking.Wait()
	if errors.Is(err, errLeft) {
		err = b.learn(ctx)
	}
	if errors.Is(err, errAbandoned) {
		_, _, err = b.ask(ctx) // a result may have arrived since the last poll
	}
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = b.lastLook(ctx, err)
	}
	report := b.report()
	if err != nil {
		return report, err
	}
	report.Held = nil // from the last inspection; the group is empty now
	if !report.OK() {
		return report, ErrNotDone
	}
	return report, nil
}

// poll polls until the barrier opens.
func (b *Barrier) poll(ctx context.Context) error {
	pause := bounded.Pauses{Limit: b.opt.Poll}
	ear := listener{src: b.src}
	defer ear.close()
	for {
		open, progress, err := b.ask(ctx)
		if err != nil {
			return err
		}
		if open {
			open, err = b.opened(ctx)
		}
		if open || err != nil {
			return err
		}
		if progress {
			pause.Reset()
		}
		early, err := bounded.Wait(ctx, b.within(pause.Next()), ear.wakeups(ctx))
		if err != nil {
			return err
		}
		if !early {
			continue
		}
		pause.Reset() // keep a short pause: wake-ups come in bursts
		if err := bounded.Sleep(ctx, pause.Next()); err != nil {
			return err
		}
	}
}

// opened reads how the jobs ended. If the group was empty from the start, it then checks again that
// it still is: jobs may have started while the history was read. It does not check a group that was
// busy again, because a group with constant work might never open the barrier.
func (b *Barrier) opened(ctx context.Context) (open bool, err error) {
	if err := b.learn(ctx); err != nil || b.results != nil || b.busy || b.opt.Settle == 0 {
		return err == nil, err
	}
	return b.empty(ctx)
}

// learn reads the history, unless the results already have the outcomes.
func (b *Barrier) learn(ctx context.Context) error {
	if b.results != nil {
		return nil
	}
	return b.loadOutcomes(ctx)
}

// within limits a pause to the rest of the settling time.
func (b *Barrier) within(pause time.Duration) time.Duration {
	left := b.opt.Settle - time.Since(b.start)
	if b.results != nil || left <= 0 {
		return pause
	}
	return min(pause, left)
}

// ask makes one poll: for missing results first, then for an empty group if required.
func (b *Barrier) ask(ctx context.Context) (open, progress bool, err error) {
	if b.results == nil {
		open, err = b.empty(ctx)
		return open, false, err
	}
	if !b.complete() {
		progress, err = b.results.update(ctx)
		if err != nil || !b.complete() {
			return false, progress, err
		}
	}
	if len(b.opt.Members) > 0 {
		return true, progress, nil
	}
	open, err = bounded.Change(ctx, b.src.Empty)
	return open, progress, err
}

func (b *Barrier) complete() bool {
	if len(b.opt.Members) > 0 {
		return b.results.count() >= b.results.wanted()
	}
	return b.results.count() >= b.opt.Expect
}

// empty reports whether nothing is held. If no poll has found the group busy, it must also have
// settled.
func (b *Barrier) empty(ctx context.Context) (bool, error) {
	settled := time.Since(b.start) >= b.opt.Settle // measured before the request
	empty, err := bounded.Change(ctx, b.src.Empty)
	if err != nil {
		return false, err
	}
	if !empty {
		b.busy = true
		return false, nil
	}
	return b.busy || settled, nil
}

// listener receives wake-ups when locks may have become free. A subscription ends when the group's
// directory is replaced, and needs an existing group, so listener renews it periodically.
type listener struct {
	src   source.Group
	due   time.Time
	pause time.Duration
	subscription
}

type subscription struct {
	channel <-chan struct{}
	stop    func()
}

// A renewal costs a request or two.
const (
	firstRenewal = time.Second
	maxRenewal   = 30 * time.Second
)

// wakeups returns the channel of wake-ups, nil without a subscription.
func (l *listener) wakeups(ctx context.Context) <-chan struct{} {
	if time.Now().Before(l.due) {
		return l.channel
	}
	l.close()
	got, err := bounded.Call(ctx, func(context.Context) (subscription, error) {
		channel, stop := l.src.Wake()
		return subscription{channel, stop}, nil
	})
	if err == nil {
		l.subscription = got
	}
	l.pause = min(max(2*l.pause, firstRenewal), maxRenewal)
	l.due = time.Now().Add(l.pause)
	return l.channel
}

func (l *listener) close() {
	if l.stop != nil {
		l.stop()
	}
	l.subscription = subscription{}
}
