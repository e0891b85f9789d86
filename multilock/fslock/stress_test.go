//go:build linux

package fslock_test

import (
	"context"
	"flag"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/source"
)

var (
	longStress = flag.Bool("long", false, "stress: 16 processes with 2,000 cycles each, instead of 8 for 15 seconds")
	seedStress = flag.Uint64("seed", 0, "stress: the seed of what happens to whom, 0 for a new one")
)

// Processes on several "hosts" take one lock in turns, while they are killed and
// stopped at random moments. A witness file, the history of what each believed,
// and the fence numbers all say whether two of them ever held it at once.
func TestStress(t *testing.T) {
	seed := *seedStress
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	c := &contest{t: t, base: fresh(t), local: fresh(t), rng: rand.New(rand.NewPCG(seed, 0))}
	size, end := 8, time.Now().Add(15*time.Second)
	if *longStress {
		size, c.cycles, end = 16, 2000, time.Now().Add(24*time.Hour)
	}
	t.Cleanup(func() {
		for _, m := range c.places {
			_ = m.Process.Kill()
		}
	})
	c.fill(size)
	allDone := func() bool { return !slices.ContainsFunc(c.places, func(m *place) bool { return !m.done }) }
	for time.Now().Before(end) && !allDone() {
		c.round()
		time.Sleep(time.Duration(c.rng.Int64N(int64(200 * time.Millisecond))))
	}
	c.finish()
	c.verdict()
}

// verdict checks what is left, and the history.
func (c *contest) verdict() {
	src := open(c.t, fslock.Options{Base: c.base})
	last := acquire(c.t, src, stressName, multilock.Options{TTL: long})
	number, err := last.Fence(c.t.Context())
	require.NoError(c.t, err)
	require.NoError(c.t, last.Release(context.Background()))

	events := append(c.events("log.*"), c.killed...)
	require.NoError(c.t, locktest.Check(events))
	for _, e := range events {
		require.Less(c.t, e.Fence, number)
	}
	requireTidy(c.t, c.base)
	c.report(events, src)
}

// report prints the figures. The last two are what was checked before: anything
// else ends the test.
func (c *contest) report(events []locktest.Event, src *fslock.Source) {
	count := map[locktest.Kind]int{}
	for _, e := range events {
		count[e.Kind]++
	}
	history, err := src.History(c.t.Context(), time.Time{})
	require.NoError(c.t, err)
	takeovers := 0
	for _, e := range history {
		if e.What == source.EventBroke {
			takeovers++
		}
	}
	c.t.Logf("%d acquisitions, %d kills, %d stops, %d lost, %d takeovers, 0 double holders, 0 stuck locks",
		count[locktest.Acquired], count[locktest.Killed], c.stops, count[locktest.Lost], takeovers)
}
