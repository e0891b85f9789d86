package nfs_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// commandPrice is the maximum number of requests of a whole "multilock run", from opening the base
// directory to its exit.
type commandPrice struct {
	what string
	most [3]int // with v4.2, v4.1 and v3
	args []string
	// before runs on another host before each command, with a job of this name.
	before func(t *testing.T, other *fslock.Source, name string)
	// steps do in this process what the command does.
	steps func(t *testing.T, src *fslock.Source, name string)
}

func commandPrices() []commandPrice {
	return []commandPrice{
		{"run -- true", [3]int{22, 22, 20}, nil, nil, runSteps},
		{"run, refused", [3]int{10, 10, 10}, []string{"-q", "-E", "0"}, holdAnew(), refusedSteps},
		{"run --every, done", [3]int{10, 10, 10}, []string{"-q", "--every", "1h"}, runTick, doneSteps},
	}
}

func runSteps(t *testing.T, src *fslock.Source, name string) {
	ctx := context.Background()
	lock, err := multilock.TryAcquire(ctx, src, name, multilock.ForJob{LookFirst: true})
	require.NoError(t, err)
	_, err = lock.Fence(ctx)
	require.NoError(t, err)
	require.NoError(t, src.Record(ctx, []source.Event{
		{Time: time.Now(), What: source.EventAcquired, Name: name}, {Time: time.Now(), What: source.EventReleased, Name: name},
	}))
	require.NoError(t, lock.Release(ctx))
}

// holdAnew acquires the lock anew each time, so that the host under test has not cached it.
func holdAnew() func(*testing.T, *fslock.Source, string) {
	var held *multilock.Lock
	return func(t *testing.T, other *fslock.Source, name string) {
		if held != nil {
			_ = held.Release(context.Background()) // the cleanup of another test may have released it
		}
		held = try(t, other, name, multilock.ForJob{Options: multilock.Options{TTL: long}})
	}
}

func refusedSteps(t *testing.T, src *fslock.Source, name string) {
	_, err := multilock.TryAcquire(context.Background(), src, name, multilock.ForJob{LookFirst: true})
	require.ErrorIs(t, err, multilock.ErrHeld)
}

// runTick runs the job for the current tick.
func runTick(t *testing.T, other *fslock.Source, name string) {
	lock := try(t, other, name, longOptions())
	now := time.Now().UTC()
	require.NoError(t, lock.Commit(context.Background(), multilock.Result{
		Name: name, By: other.Self(), Token: lock.Record().Token, Start: now, Attempt: 1, Final: true, Tick: now, Began: now,
	}))
	require.NoError(t, lock.Release(context.Background()))
}

func doneSteps(t *testing.T, src *fslock.Source, name string) {
	_, err := src.Now(context.Background())
	require.NoError(t, err)
	result, err := src.Result(context.Background(), name)
	require.NoError(t, err)
	require.True(t, result.OK())
}

// Measures whole processes: a job under a lock, a run whose lock is held, and a job that is already
// done. On a busy machine "true" takes longer than a short job and costs the additional requests of
// a long one, so the lowest count is compared. TestCostOfEachCallOfACommand is exact.
// Rule: calls
func TestCostOfCommand(t *testing.T) {
	needCommand(t)
	const atMost = 20
	for _, p := range commandPrices() {
		for i, h := range hosts() {
			t.Run(p.what+"/v"+h.version, func(t *testing.T) {
				c := newCommandBench(t, p, i)
				c.command()
				least := math.MaxInt
				for n := 0; n < atMost && least > p.most[i]; n++ {
					c.prepare()
					spent := h.spends(t, c.command)
					t.Logf("%d: %s", spent.total(), spent)
					least = min(least, spent.total())
				}
				require.LessOrEqual(t, least, p.most[i])
			})
		}
	}
}

// Breaks down the requests of a command by call: does in this process what TestCostOfCommand
// measures, each time with a new source.
// Rule: calls
func TestCostOfEachCallOfACommand(t *testing.T) {
	needLab(t)
	for _, p := range commandPrices() {
		for i, h := range hosts() {
			t.Run(p.what+"/v"+h.version, func(t *testing.T) {
				c, l := newCommandBench(t, p, i), &ledger{t: t, h: h}
				through := faultfs.New(h, l.note)
				// Exclude the path to the base directory, which costs more here: other hosts change
				// the share's root, and its mount is not in this process's mount table.
				cost := func() int {
					return l.total() - l.during("opendir .").total() - l.during("filesystem .").total() + 1
				}
				for n := 0; n < tries+2 && (n < 2 || cost() > p.most[i]); n++ {
					if n > 0 {
						c.prepare()
					}
					l.clear()
					src, err := fslock.Open(fslock.Options{Base: c.on(h), FS: through, Self: h.identity(t)})
					require.NoError(t, err)
					p.steps(t, src, c.name)
					require.NoError(t, src.Close())
				}
				t.Logf("%d\n%s", cost(), l)
				require.LessOrEqual(t, cost(), p.most[i])
			})
		}
	}
}

// commandBench measures the cost of a command.
type commandBench struct {
	place
	t     *testing.T
	price commandPrice
	host  host
	other *fslock.Source
	name  string
	count int
}

// newCommandBench returns a bench that is ready for its first command.
func newCommandBench(t *testing.T, p commandPrice, i int) *commandBench {
	pl := newPlace(t)
	b := &commandBench{place: pl, t: t, price: p, host: hosts()[i], other: pl.source(t, hosts()[(i+1)%3]), name: "job"}
	b.prepare()
	return b
}

// prepare runs the price's before on another host. A job that is already done gets a new name each
// time.
func (b *commandBench) prepare() {
	b.count++
	if b.price.before == nil {
		return
	}
	if b.price.args[len(b.price.args)-1] == "1h" {
		b.name = fmt.Sprintf("job%d", b.count)
	}
	b.price.before(b.t, b.other, b.name)
}

func (b *commandBench) command() {
	args := append([]string{"run", "-n", b.name}, b.price.args...)
	b.multilockOn(b.t, b.host, append(args, "--", "true")...)
}
