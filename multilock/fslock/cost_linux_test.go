package fslock_test

import (
	"context"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/testkit/calls"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
)

// localCost has the largest cost of one step on a local filesystem: system calls on files and clocks, and
// allocations.
type localCost struct {
	step          string
	calls, allocs int
	prepare       func(t *testing.T, src *fslock.Source) (step func())
}

func localCosts() []localCost {
	return []localCost{
		{"acquire and release", 27, 61, func(t *testing.T, src *fslock.Source) func() { return cycle(t, context.Background(), src) }},
		// Real programs have a context that can end.
		{"acquire and release with a context that can end", 27, 61, func(t *testing.T, src *fslock.Source) func() {
			return cycle(t, t.Context(), src)
		}},
		{"look", 19, 126, func(t *testing.T, src *fslock.Source) func() {
			acquire(t, src, "lock", multilock.Options{TTL: long})
			return func() {
				seen, err := multilock.Inspect(t.Context(), src, "lock", multilock.StalePolicy{})
				require.NoError(t, err)
				require.Equal(t, multilock.StateHeld, seen.State)
			}
		}},
		{"eight heartbeats", 70, 72, func(t *testing.T, src *fslock.Source) func() {
			lock := acquire(t, src, "lock", multilock.Options{TTL: long})
			return func() {
				for range 8 { // one of which makes every check
					require.NoError(t, lock.Verify(t.Context()))
				}
			}
		}},
	}
}

func cycle(t *testing.T, ctx context.Context, src *fslock.Source) func() {
	return func() {
		lock, err := multilock.Acquire(ctx, src, "lock", multilock.Options{TTL: long})
		require.NoError(t, err)
		require.NoError(t, lock.Release(ctx))
	}
}

const (
	costSteps = 20
	costStep  = "MULTILOCK_TEST_COST_STEP"
	costDir   = "MULTILOCK_TEST_COST_DIR"
)

// No step makes more system calls or allocations than this table allows. The golden traces have the operations
// of a step; this has the calls that package vfs makes for them.
// Rule: calls
func TestCostOfLocalSteps(t *testing.T) {
	for _, c := range localCosts() {
		if step := os.Getenv(costStep); step != "" { // the child that is traced
			if step == c.step {
				c.play(t, os.Getenv(costDir), calls.Counted)
			}
			continue
		}
		for kind, dir := range calls.LocalDirs(t) {
			t.Run(c.step+"/calls/"+kind, func(t *testing.T) { c.countCalls(t, dir) })
			t.Run(c.step+"/allocations/"+kind, func(t *testing.T) { c.countAllocs(t, dir) })
		}
	}
}

// play makes the steps once, to open what stays open, and then once more for count.
func (c localCost) play(t *testing.T, dir string, count func(steps func())) {
	src := open(t, fslock.Options{Base: dir})
	step := c.prepare(t, src)
	steps := func() {
		for range costSteps {
			step()
		}
	}
	steps()
	count(steps)
}

// countCalls takes the least of several counts: after two seconds, which pass on a busy machine, the filesystem's
// time is read again.
func (c localCost) countCalls(t *testing.T, dir string) {
	var least []string
	for n := 0; n < 8 && (n == 0 || len(least) > c.calls*costSteps); n++ {
		child := exec.Command(os.Args[0], "-test.run=^TestCostOfLocalSteps$") //nolint:gosec // this test
		child.Env = append(os.Environ(), costStep+"="+c.step, costDir+"="+dir)
		if made := calls.Of(t, child); n == 0 || len(made) < len(least) {
			least = made
		}
	}
	require.LessOrEqual(t, len(least), c.calls*costSteps, "one step has %q", calls.Names(least[:min(len(least), len(least)/costSteps+1)]))
}

func (c localCost) countAllocs(t *testing.T, dir string) {
	calls.NeedAllocs(t)
	c.play(t, dir, func(steps func()) { require.LessOrEqual(t, int(testing.AllocsPerRun(10, steps))/costSteps, c.allocs) })
}
