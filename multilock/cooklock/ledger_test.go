package cooklock_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/cooklock"
	"github.com/multilock/go/multilock/source"
)

func register(t testing.TB, base, name string) cooklock.LedgerRegister {
	t.Helper()
	return cooklock.LedgerRegister{Ledger: ledger(t, base), Name: name, TTL: multilock.DefaultTTL}
}

func requirePeek(t testing.TB, r cooklock.Register, want string, number uint64) {
	t.Helper()
	v, n, err := r.Peek(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, string(v))
	require.Equal(t, number, n)
}

func TestSwapReturnsWhatWasThere(t *testing.T) {
	base := t.TempDir()
	r := register(t, base, "nightly")
	v, n, err := r.Peek(t.Context())
	require.NoError(t, err)
	require.Nil(t, v)
	require.Zero(t, n)
	require.Empty(t, entries(t, base), "looking leaves no traces")

	for i, old := range []string{"", "a\nb", "x"} {
		value := []string{"a\nb", "x", "\x00\xff"}[i]
		was, n, err := r.Swap(t.Context(), []byte(value))
		require.NoError(t, err)
		require.Equal(t, old, string(was))
		require.Equal(t, i == 0, was == nil)
		require.EqualValues(t, i+1, n)
		requirePeek(t, register(t, base, "nightly"), value, n)
	}
	requireTidy(t, base)
}

// requireTidy checks that the directory only has values.
func requireTidy(t testing.TB, base string) {
	t.Helper()
	require.Empty(t, entries(t, base, ".locks"))
	require.Empty(t, entries(t, base, ".multilock/staging"))
	require.Equal(t, []string{"done"}, entries(t, base, ".multilock/groups/.locks"))
}

func entries(t testing.TB, path ...string) []string {
	t.Helper()
	found, err := os.ReadDir(filepath.Join(path...))
	require.NoError(t, err)
	var names []string
	for _, e := range found {
		names = append(names, e.Name())
	}
	return names
}

func TestRegistersAreIndependent(t *testing.T) {
	base := t.TempDir()
	for _, name := range []string{"one", "two"} {
		old, n, err := register(t, base, name).Swap(t.Context(), []byte(name))
		require.NoError(t, err)
		require.Nil(t, old)
		require.EqualValues(t, 1, n)
	}
	requirePeek(t, register(t, base, "one"), "one", 1)
}

func TestSwapRefusesWhatNoRegisterHolds(t *testing.T) {
	r := register(t, t.TempDir(), "nightly")
	for _, v := range [][]byte{nil, {}, make([]byte, cooklock.MaxValue+1)} {
		_, _, err := r.Swap(t.Context(), v)
		require.ErrorIs(t, err, source.ErrInvalid)
	}
	_, _, err := r.Swap(t.Context(), make([]byte, cooklock.MaxValue))
	require.NoError(t, err)
	v, _, err := r.Peek(t.Context())
	require.NoError(t, err)
	require.Len(t, v, cooklock.MaxValue)
}

// The command, which is only for users, is shortened to the size of a register.
func TestLongCommand(t *testing.T) {
	src := open(t, t.TempDir(), cooklock.Options{Period: time.Hour})
	for _, text := range []string{strings.Repeat("x", 9999), strings.Repeat("\x00", 4<<10), strings.Repeat("\u20ac", 999)} {
		_, err := multilock.TryAcquire(t.Context(), src, fmt.Sprint(len(text)), multilock.Options{Command: text, User: text})
		require.NoError(t, err)
	}
}

// A truncated or foreign result is an error with advice, never a value, and is not replaced.
func TestDamagedRegister(t *testing.T) {
	base := t.TempDir()
	r := register(t, base, "nightly")
	path := filepath.Join(base, ".multilock/groups/.locks/done/nightly")
	_, _, err := r.Swap(t.Context(), []byte("abc"))
	require.NoError(t, err)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	damaged := []string{"", "garbage\n", "\x00\x00\x00", string(whole[:len(whole)/2])}
	for _, other := range [][2]string{{"register 1 ", "register 2 "}, {"register 1 YWJj", "register 1 "}, {"YWJj", "YWJ"}, {"YWJj", "YWJj..."}, {`"attempt":1`, `"attempt":0`}} {
		text := strings.Replace(string(whole), other[0], other[1], 1)
		require.NotEqual(t, string(whole), text)
		damaged = append(damaged, text)
	}
	for _, text := range damaged {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
		_, _, err = r.Peek(t.Context())
		require.ErrorIs(t, err, source.ErrInvalid, "%q", text)
		_, _, err = r.Swap(t.Context(), []byte("abc"))
		require.ErrorIs(t, err, source.ErrInvalid, "%q", text)
		require.NotErrorIs(t, err, source.ErrUnsure)
		require.ErrorContains(t, err, "remove that result")
		left, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, text, string(left))
	}
}

// The TTL of a swap's lock is part of the period, and the period has a minimum.
func TestPeriodIsLongEnoughForASwap(t *testing.T) {
	files := ledger(t, t.TempDir())
	for period, ttl := range map[time.Duration]time.Duration{
		400 * time.Millisecond: 100 * time.Millisecond, time.Minute: 15 * time.Second, time.Hour: 30 * time.Second, 0: 30 * time.Second,
	} {
		src, err := cooklock.New(cooklock.Options{Ledger: files, Period: period})
		require.NoError(t, err)
		require.Equal(t, ttl, cooklock.SwapTTL(src))
	}
	_, err := cooklock.New(cooklock.Options{Ledger: files, Period: 399 * time.Millisecond})
	require.ErrorIs(t, err, source.ErrInvalid)
	require.ErrorContains(t, err, "must be at least 400ms")
}

// cell is a register in memory. A test can interfere with each step.
type cell struct {
	mu     sync.Mutex
	values [][]byte // all values; the last is the current one

	// before and after are called outside of the step itself: sleeping in them simulates a process
	// that is paused, or a slow request. An error of before means that nothing was done, an error
	// of after that the reply was lost.
	before, after func(op string) error
	// stale selects the value that a peek returns, by its index in values.
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

// chef returns a source over the cell, as in a separate process.
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

func look(t testing.TB, src source.Source) source.Observation {
	t.Helper()
	seen, err := multilock.Inspect(t.Context(), src, "nightly", source.StalePolicy{})
	require.NoError(t, err)
	return seen
}
