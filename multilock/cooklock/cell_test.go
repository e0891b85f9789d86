package cooklock_test

import (
	"bytes"
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/cooklock"
	"github.com/multilock/go/multilock/source"
)

// cell is a register in memory. A test can stand in the way of each of its steps.
type cell struct {
	mu     sync.Mutex
	values [][]byte // all that it has held; the last is what it holds

	// before and after are called outside of the step itself: who sleeps in them is
	// a process that is paused, or whose request is under way. An error of before
	// says that nothing was done, one of after that the reply was lost.
	before, after func(op string) error
	// stale chooses what a peek shows, by its number in values.
	stale func(held int) int
}

const (
	peek = "peek"
	swap = "swap"
)

func newCell() *cell {
	pass := func(string) error { return nil }
	return &cell{values: [][]byte{nil}, before: pass, after: pass, stale: func(held int) int { return held - 1 }}
}

// Swap implements cooklock.Register.
func (c *cell) Swap(_ context.Context, v []byte) ([]byte, uint64, error) {
	if err := c.before(swap); err != nil {
		return nil, 0, err
	}
	c.mu.Lock()
	old := c.values[len(c.values)-1]
	c.values = append(c.values, bytes.Clone(v))
	n := uint64(len(c.values) - 1)
	c.mu.Unlock()
	return old, n, c.after(swap)
}

// Peek implements cooklock.Register.
func (c *cell) Peek(context.Context) ([]byte, uint64, error) {
	if err := c.before(peek); err != nil {
		return nil, 0, err
	}
	c.mu.Lock()
	n := c.stale(len(c.values))
	value := c.values[n]
	c.mu.Unlock()
	return value, uint64(n), c.after(peek)
}

func (c *cell) swaps() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.values) - 1
}

// chef makes a source over the cell, as a process of its own would.
func (c *cell) chef(t testing.TB, opt cooklock.Options) *cooklock.Source {
	t.Helper()
	opt.Open = func(string) (cooklock.Register, error) { return c, nil }
	if opt.Period == 0 {
		opt.Period = period
	}
	src, err := cooklock.New(opt)
	require.NoError(t, err)
	return src
}

func try(t testing.TB, src source.Source) (*multilock.Lock, error) {
	t.Helper()
	return multilock.TryAcquire(t.Context(), src, "nightly", multilock.Options{})
}

func must(t testing.TB, src source.Source) *multilock.Lock {
	t.Helper()
	lock, err := try(t, src)
	require.NoError(t, err)
	return lock
}

func look(t testing.TB, src source.Source) source.Sighting {
	t.Helper()
	seen, err := multilock.Inspect(t.Context(), src, "nightly", source.Patience{})
	require.NoError(t, err)
	return seen
}
