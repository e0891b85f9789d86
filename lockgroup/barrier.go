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

// BarrierOptions say what a barrier waits for, and how.
type BarrierOptions struct {
	// Members are the names that must each have a final result. The source must be
	// a source.Changes. The barrier may be started before any of the jobs.
	Members []string
	// Expect is how many names must have a final result, whichever they are; then
	// the group must also be vacant. The source must be a source.Changes, too.
	// With neither Members nor Expect the barrier opens when the group is vacant.
	Expect int
	// Settle is for how long a group in which the barrier has seen nobody must stay
	// vacant, so that jobs which are just being started are waited for; 0 means that
	// one moment is enough. It is not used with Members or Expect.
	Settle time.Duration
	// Since is how long before Wait began a job may have ended to count, by the clock of
	// the host that ran it; DefaultSince if 0. It is not used with Members or Expect.
	Since time.Duration
	// StalePolicy decides when a holder counts as dead.
	StalePolicy multilock.StalePolicy
	// Poll is the longest pause between two polls, multilock.DefaultPoll if 0.
	Poll time.Duration
	// Inspect is the longest pause between two looks at the holders,
	// DefaultInspect if 0. Holders with a short TTL are looked at more often.
	Inspect time.Duration
	// Takeover is how long a job whose holder died is waited for while nothing else that is waited
	// for is held: another host may take the job over. 0 is for three TTLs of the holder, and a
	// negative duration for ever. It is for Members and Expect.
	Takeover time.Duration
	// Died, if not nil, is called at once with each holder that is found dead.
	Died func(Holding)
}

// DefaultInspect is the longest pause between two looks at who holds what.
const DefaultInspect = 30 * time.Second

// ErrNotDone says that a barrier has opened, and that a job failed or died.
var ErrNotDone = errors.New("not everything is done")

// Barrier waits for the jobs of a group.
//
// A poll costs one request. Waiting never removes any state that others look at:
// of a lock, only that of a dead holder.
type Barrier struct {
	src     source.Group
	opt     BarrierOptions
	results *results // nil if no results are asked for
	holders *holders
	start   time.Time
	busy    bool // the group was not vacant at some poll

	mu     sync.Mutex
	ends   *ends // what the history told when the barrier opened
	untold error // why it did not tell all, nil if it did
}

// NewBarrier prepares a barrier for one Wait. The error is a
// *source.InvalidError for options that contradict each other, and
// multilock.ErrUnsupported for members in a source that keeps no results.
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
	ledger, ok := src.(source.Changes)
	if !ok {
		return nil, fmt.Errorf("a barrier for members: %w: it keeps no results of jobs", multilock.ErrUnsupported)
	}
	b.results = newResults(ledger, opt.Members)
	return b, nil
}

func (o *BarrierOptions) check() error {
	switch {
	case len(o.Members) > 0 && o.Expect != 0:
		return &source.InvalidError{What: "expect", Got: strconv.Itoa(o.Expect), Why: "the members are named, which says how many they are"}
	case o.Expect < 0:
		return &source.InvalidError{What: "expect", Got: strconv.Itoa(o.Expect), Why: "must be positive"}
	case o.Poll < 0, o.Inspect < 0, o.Settle < 0, o.Since < 0:
		return &source.InvalidError{What: "duration", Got: min(o.Poll, o.Inspect, o.Settle, o.Since).String(), Why: "must be positive"}
	}
	return nil
}

// Wait returns when the barrier opens. The error is nil if all that was waited
// for is done; ErrNotDone if a job failed, or died and was not taken over;
// context.Cause(ctx) if that ended first; any other if the source failed. The
// report is true in every case, as far as it goes.
//
// A barrier without members opens at one instant at which nothing is held. It
// says nothing about jobs that were not started yet. How those ended that were, it
// learns from the source's history then: the last run of each name counts, since
// Since, whoever started and saw it. See Report.Untold for sources that cannot tell.
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
		_, _, err = b.ask(ctx) // a result may have come at the last moment
	}
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = b.lastLook(ctx, err)
	}
	report := b.report()
	if err != nil {
		return report, err
	}
	report.Held = nil // that was at the last look; the barrier knows better
	if !report.OK() {
		return report, ErrNotDone
	}
	return report, nil
}

// poll asks until the barrier opens.
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
		early, err := bounded.Wait(ctx, b.within(pause.Next()), ear.news(ctx))
		if err != nil {
			return err
		}
		if !early {
			continue
		}
		pause.Reset() // and a short pause: news often come in swarms
		if err := bounded.Sleep(ctx, pause.Next()); err != nil {
			return err
		}
	}
}

// opened learns how the jobs ended. A group that has been vacant since the wait began is then
// asked whether it still is: jobs that are just being started may have begun while the history
// was read. One that was busy is not: where there is always work it might never be left.
func (b *Barrier) opened(ctx context.Context) (open bool, err error) {
	if err := b.learn(ctx); err != nil || b.results != nil || b.busy || b.opt.Settle == 0 {
		return err == nil, err
	}
	return b.vacant(ctx)
}

// learn asks, where no results can tell, how the jobs ended.
func (b *Barrier) learn(ctx context.Context) error {
	if b.results != nil {
		return nil
	}
	return b.recall(ctx)
}

// within makes a pause end when the group has settled.
func (b *Barrier) within(pause time.Duration) time.Duration {
	left := b.opt.Settle - time.Since(b.start)
	if b.results != nil || left <= 0 {
		return pause
	}
	return min(pause, left)
}

// ask makes one poll: for results as long as some are missing, then for vacancy
// if that is wanted.
func (b *Barrier) ask(ctx context.Context) (open, progress bool, err error) {
	if b.results == nil {
		open, err = b.vacant(ctx)
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
	open, err = bounded.Call(ctx, b.src.Vacant)
	return open, progress, err
}

func (b *Barrier) complete() bool {
	if len(b.opt.Members) > 0 {
		return b.results.count() >= b.results.wanted()
	}
	return b.results.count() >= b.opt.Expect
}

// vacant asks whether nothing is held. A group that was never seen otherwise has
// to stay so for the time to settle.
func (b *Barrier) vacant(ctx context.Context) (bool, error) {
	settled := time.Since(b.start) >= b.opt.Settle // before the question: the answer is newer
	vacant, err := bounded.Call(ctx, b.src.Vacant)
	if err != nil {
		return false, err
	}
	if !vacant {
		b.busy = true
		return false, nil
	}
	return b.busy || settled, nil
}

// listener hears of locks that may have become free. Its subscription ends when
// the group's directory is replaced, and there is none before there is a group:
// so it is renewed now and then.
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

// news is the channel on which news arrive, nil if there is none.
func (l *listener) news(ctx context.Context) <-chan struct{} {
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
