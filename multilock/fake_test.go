package multilock_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// fake is a lock source in memory. Each of its steps succeeds unless the test scripts something else, and
// records when it was called, by the bubble's clock.
type fake struct {
	mu     sync.Mutex
	script map[step]action
	calls  []call
	seen   multilock.Observation
	wake   chan struct{}
	claim  source.Claim
	fence  uint64
	plain  bool // its leases store no results
	result multilock.Result
}

type step string

const (
	contend step = "contend"
	try     step = "try"
	wake    step = "wake"
	look    step = "look"
	breaks  step = "break"
	force   step = "force"
	closes  step = "close"
	renew   step = "renew"
	release step = "release"
	fence   step = "fence"
	mark    step = "mark"
	detach  step = "detach"
	commit  step = "commit"
	outcome step = "outcome"
	forget  step = "forget"
)

// action is what a step does instead of succeeding.
type action func(context.Context) error

type call struct {
	step step
	at   time.Time
}

func newFake() *fake { return &fake{script: map[step]action{}} }

// bubble runs a test with its own source, in a bubble of time; runBubble is for one of several.
func bubble(t *testing.T, test func(t *testing.T, f *fake)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newFake()) })
}

func runBubble(t *testing.T, name string, test func(t *testing.T, f *fake)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { bubble(t, test) })
}

// on scripts a step, from its next call on.
func (f *fake) on(s step, do action) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.script[s] = do
}

// show sets the result of inspections from now on.
func (f *fake) show(seen multilock.Observation) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = seen
}

func (f *fake) do(ctx context.Context, s step) error {
	f.mu.Lock()
	f.calls = append(f.calls, call{s, time.Now()})
	do := f.script[s]
	f.mu.Unlock()
	if do == nil {
		return nil
	}
	return do(ctx)
}

// times returns when a step was called.
func (f *fake) times(s step) []time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	var times []time.Time
	for _, c := range f.calls {
		if c.step == s {
			times = append(times, c.at)
		}
	}
	return times
}

func (f *fake) count(s step) int { return len(f.times(s)) }

// steps is the order in which the steps were called.
func (f *fake) steps() []step {
	f.mu.Lock()
	defer f.mu.Unlock()
	var steps []step
	for _, c := range f.calls {
		steps = append(steps, c.step)
	}
	return steps
}

// fails makes a step fail.
func fails(err error) action { return func(context.Context) error { return err } }

// hangs makes a step hang until the channel is closed, even if its context ends, and then return next. A
// call on a hard NFS mount behaves like that.
func hangs(until <-chan struct{}, next error) action {
	return func(context.Context) error {
		<-until
		return next
	}
}

// inTurn does one action after the other, and then repeats the last one.
func inTurn(actions ...action) action {
	var mu sync.Mutex
	return func(ctx context.Context) error {
		mu.Lock()
		do := actions[0]
		if len(actions) > 1 {
			actions = actions[1:]
		}
		mu.Unlock()
		return do(ctx)
	}
}

func succeeds(context.Context) error { return nil }

// showing is an inspection with one observation after the other.
func (f *fake) showing(observations ...multilock.Observation) action {
	var actions []action
	for _, seen := range observations {
		actions = append(actions, func(context.Context) error {
			f.show(seen)
			return nil
		})
	}
	return inTurn(actions...)
}

// node7 is a lock that a process on another host holds.
func node7(state source.State) multilock.Observation {
	record := source.Record{Name: "nightly", Token: "seven"}
	record.Holder = multilock.Holder{
		Identity: process.Identity{Host: "node7", PID: 4711}, User: "ada", Command: "rsync",
	}
	return multilock.Observation{State: state, Record: record, Age: 24 * time.Hour, Why: "its heart beats", Next: time.Second}
}

// Contend implements multilock.Source.
func (f *fake) Contend(ctx context.Context, name string, claim source.Claim, _ multilock.StalePolicy) (source.Contender, error) {
	f.mu.Lock()
	f.claim = claim
	f.mu.Unlock()
	if err := f.do(ctx, contend); err != nil {
		return nil, err
	}
	return &fakeContender{f: f, name: name}, nil
}

// Observe implements multilock.Source.
func (f *fake) Observe(_ context.Context, name string, _ multilock.StalePolicy) (source.Observer, error) {
	return &fakeContender{f: f, name: name}, nil
}

// Names implements multilock.Source.
func (f *fake) Names(context.Context) ([]string, error) { return nil, nil }

type fakeContender struct {
	f    *fake
	name string
}

func (c *fakeContender) Try(ctx context.Context) (source.Lease, error) {
	since := boottime.Now()
	if err := c.f.do(ctx, try); err != nil {
		return nil, err
	}
	lease := &fakeLease{f: c.f, name: c.name, since: since}
	if c.f.plain {
		return struct{ source.Lease }{lease}, nil
	}
	return lease, nil
}

func (c *fakeContender) Wake() <-chan struct{} {
	_ = c.f.do(context.Background(), wake)
	return c.f.wake
}

func (c *fakeContender) Look(ctx context.Context) (multilock.Observation, error) {
	err := c.f.do(ctx, look)
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	return c.f.seen, err
}

func (c *fakeContender) Break(ctx context.Context) error { return c.f.do(ctx, breaks) }

func (c *fakeContender) Force(ctx context.Context) error { return c.f.do(ctx, force) }

func (c *fakeContender) Close() error { return c.f.do(context.Background(), closes) }

type fakeLease struct {
	f     *fake
	name  string
	since boottime.Instant
}

func (l *fakeLease) Record() source.Record {
	return source.Record{Name: l.name, Token: "mine", Claim: l.f.claim}
}

func (l *fakeLease) Since() boottime.Instant { return l.since }

func (l *fakeLease) Renew(ctx context.Context) error { return l.f.do(ctx, renew) }

func (l *fakeLease) Release(ctx context.Context) error { return l.f.do(ctx, release) }

func (l *fakeLease) Fence(ctx context.Context) (uint64, error) {
	if err := l.f.do(ctx, fence); err != nil {
		return 0, err
	}
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	l.f.fence++
	return l.f.fence, nil
}

func (l *fakeLease) MarkJob(ctx context.Context, _ ...process.Group) error { return l.f.do(ctx, mark) }

func (l *fakeLease) Close() error { return l.f.do(context.Background(), detach) }

func (l *fakeLease) Commit(ctx context.Context, r multilock.Result) error {
	if err := l.f.do(ctx, commit); err != nil {
		return err
	}
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	l.f.result = r
	return nil
}

func (l *fakeLease) Outcome(ctx context.Context) (multilock.Result, error) {
	err := l.f.do(ctx, outcome)
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	return l.f.result, err
}

func (l *fakeLease) Forget(ctx context.Context) error { return l.f.do(ctx, forget) }

// The TTL of these tests is long, because a lock's age also counts real time, which passes a little even in
// a bubble.
const (
	ttl  = 10 * time.Minute
	beat = 30 * time.Second // the longest possible
)

// acquire acquires a free lock.
func acquire(t *testing.T, f *fake, opt multilock.Terms) *multilock.Lock {
	t.Helper()
	lock, err := multilock.TryAcquire(t.Context(), f, "nightly", opt)
	require.NoError(t, err)
	return lock
}

// isDone reports whether the lock's context has ended.
func isDone(lock *multilock.Lock) bool { return lock.Context().Err() != nil }

// gaps are the times between instants.
func gaps(moments []time.Time) []time.Duration {
	var between []time.Duration
	for i := range len(moments) - 1 {
		between = append(between, moments[i+1].Sub(moments[i]))
	}
	return between
}
