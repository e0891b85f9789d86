package lockgroup_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/lockgroup/internal/grouptest"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/fslock/fslocktest"
	"github.com/multilock/go/multilock/process"
)

func trySlot(t testing.TB, src multilock.Source, n int) *lockgroup.Slot {
	t.Helper()
	slot, err := lockgroup.TryAcquireSlot(grouptest.Within(t), src, "x", n, multilock.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = slot.Release(context.Background()) })
	return slot
}

// Rule: slots
func TestSlotNames(t *testing.T) {
	name, i, ok := lockgroup.ParseSlotName(lockgroup.SlotName("night#slot-1ly", 12))
	require.True(t, ok)
	require.Equal(t, "night#slot-1ly", name)
	require.Equal(t, 12, i)
	for _, other := range []string{"x", "x#slot-", "x#slot-0", "x#slot-01", "x#slot-+1", "x#slot--1", "#slot-x", "x-slot-1"} {
		_, _, ok := lockgroup.ParseSlotName(other)
		require.False(t, ok, other)
	}
}

// Rule: slots
func TestAsManyHoldersAsSlots(t *testing.T) {
	src := fslocktest.Open(t, fslock.Options{Base: t.TempDir()})
	a, b := trySlot(t, src, 2), trySlot(t, src, 2)
	require.ElementsMatch(t, []int{1, 2}, []int{a.Number, b.Number})
	_, err := lockgroup.TryAcquireSlot(t.Context(), src, "x", 2, multilock.Options{})
	require.ErrorIs(t, err, multilock.ErrHeld)
	var full *lockgroup.FullError
	require.ErrorAs(t, err, &full)
	require.Len(t, full.Holders, 2)
	require.ErrorContains(t, err, `all 2 slots of "x" are held; slot 1 by `)

	c := trySlot(t, src, 3) // a process with a larger number of slots
	require.Equal(t, 3, c.Number)
	require.NoError(t, a.Release(t.Context()))
	require.Equal(t, a.Number, trySlot(t, src, 2).Number)
	_, err = multilock.TryAcquire(t.Context(), src, "x", multilock.Options{})
	require.NoError(t, err, "the name itself is another lock")
}

// No slot is preferred.
// Rule: slots
func TestSlotsAreTakenAtRandom(t *testing.T) {
	src := fslocktest.Open(t, fslock.Options{Base: t.TempDir()})
	taken := map[int]int{}
	for range 100 {
		slot := trySlot(t, src, 3)
		taken[slot.Number]++
		require.NoError(t, slot.Release(t.Context()))
	}
	require.Len(t, taken, 3) // the chance that one slot is never drawn is 1 in 10^17
}

// dead returns the identity of a process of this host that has ended and had this process's number.
func dead(t testing.TB) process.Identity {
	t.Helper()
	self, err := process.Self()
	require.NoError(t, err)
	self.Start--
	return self
}

// Rule: slots
func TestSlotOfTheDeadIsTakenOver(t *testing.T) {
	base := t.TempDir()
	crashed := trySlot(t, fslocktest.Open(t, fslock.Options{Base: base, Self: dead(t)}), 1)
	src := fslocktest.Open(t, fslock.Options{Base: base})
	slot := trySlot(t, src, 1)
	require.NoError(t, slot.Verify(t.Context()))
	require.ErrorIs(t, crashed.Verify(t.Context()), multilock.ErrLost)
}

// Rule: slots
func TestWaitingForASlot(t *testing.T) {
	src := fslocktest.Open(t, fslock.Options{Base: t.TempDir()})
	held := []*lockgroup.Slot{trySlot(t, src, 3), trySlot(t, src, 3), trySlot(t, src, 3)}
	type outcome struct {
		slot *lockgroup.Slot
		err  error
	}
	got := make(chan outcome, 1)
	ctx := grouptest.Within(t)
	go func() {
		slot, err := lockgroup.AcquireSlot(ctx, src, "x", 3, multilock.Options{Poll: 10 * time.Millisecond})
		got <- outcome{slot, err}
	}()
	require.NoError(t, held[1].Release(t.Context()))
	o := <-got
	require.NoError(t, o.err)
	require.Equal(t, held[1].Number, o.slot.Number)
	require.NoError(t, o.slot.Release(t.Context()))
	requireNothingStaged(t, src)
}

// A waiter that times out reports the holders of the slots, and leaves nothing behind.
// Rule: slots
func TestGivingUpWaitingForASlot(t *testing.T) {
	src := fslocktest.Open(t, fslock.Options{Base: t.TempDir()})
	trySlot(t, src, 2)
	trySlot(t, src, 2)
	enough := errors.New("enough")
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, enough)
	defer cancel()
	_, err := lockgroup.AcquireSlot(ctx, src, "x", 2, multilock.Options{})
	require.ErrorIs(t, err, enough)
	require.ErrorIs(t, err, multilock.ErrHeld)
	requireNothingStaged(t, src)
}

func requireNothingStaged(t *testing.T, src *fslock.Source) {
	t.Helper()
	left, err := src.Leftovers(t.Context())
	require.NoError(t, err)
	require.Empty(t, left)
}

// One unusable slot does not keep a contender from the others; its error is returned if there are no
// others.
// Rule: slots
func TestSlotThatCannotBeUsed(t *testing.T) {
	base := t.TempDir()
	src := fslocktest.Open(t, fslock.Options{Base: base})
	require.NoError(t, trySlot(t, src, 1).Release(t.Context()))
	require.NoError(t, os.WriteFile(filepath.Join(base, fslock.DefaultGroup, lockgroup.SlotName("x", 1)), nil, 0o666))
	slot, err := lockgroup.AcquireSlot(grouptest.Within(t), src, "x", 2, multilock.Options{})
	require.NoError(t, err)
	require.Equal(t, 2, slot.Number)
	_, err = lockgroup.TryAcquireSlot(t.Context(), src, "x", 2, multilock.Options{})
	require.ErrorIs(t, err, multilock.ErrInvalid)
	require.NotErrorIs(t, err, multilock.ErrHeld)
	require.NoError(t, slot.Release(t.Context()))
}

// Rule: slots
func TestMoreSlotsThanOneWaitsAt(t *testing.T) {
	src := fslocktest.Open(t, fslock.Options{Base: t.TempDir()})
	seen := map[int]bool{}
	for range 20 {
		slot, err := lockgroup.AcquireSlot(grouptest.Within(t), src, "x", 20, multilock.Options{})
		require.NoError(t, err)
		require.False(t, seen[slot.Number])
		seen[slot.Number] = true
		t.Cleanup(func() { _ = slot.Release(context.Background()) })
	}
	_, err := lockgroup.TryAcquireSlot(t.Context(), src, "x", 20, multilock.Options{})
	require.ErrorIs(t, err, multilock.ErrHeld)
}

// Rule: none (options)
func TestNumbersOfSlots(t *testing.T) {
	src := fslocktest.Open(t, fslock.Options{Base: t.TempDir()})
	for _, n := range []int{-1, 0, lockgroup.MaxSlots + 1} {
		_, err := lockgroup.TryAcquireSlot(t.Context(), src, "x", n, multilock.Options{})
		require.ErrorIs(t, err, multilock.ErrInvalid)
		_, err = lockgroup.AcquireSlot(t.Context(), src, "x", n, multilock.Options{})
		require.ErrorIs(t, err, multilock.ErrInvalid)
	}
	_, err := lockgroup.AcquireSlot(t.Context(), src, "a/b", 2, multilock.Options{})
	require.ErrorIs(t, err, multilock.ErrInvalid)
}

// Sixteen contenders share three slots. There are never more than three holders, and never two in one
// slot; each contender acquires a slot repeatedly.
// Rule: slots, I1
func TestSlotsUnderStress(t *testing.T) {
	const contenders, slots, all = 16, 3, 480
	s := slotStress{T: t, slots: slots, full: make(chan struct{})}
	s.left.Store(all)
	base, turns := t.TempDir(), make([]int, contenders)
	var group sync.WaitGroup
	for i := range contenders {
		src := fslocktest.Open(t, fslock.Options{Base: base})
		group.Go(func() {
			for s.left.Add(-1) >= 0 && !t.Failed() {
				s.visit(src)
				turns[i]++
			}
		})
	}
	group.Wait()
	t.Logf("turns of each: %v (an even share is %d)", turns, all/contenders)
	require.Positive(t, slices.Min(turns), "somebody starved")
}

type slotStress struct {
	*testing.T
	slots        int
	left, inside atomic.Int32
	in           [lockgroup.MaxSlots + 1]atomic.Int32
	full         chan struct{} // closed when all slots are in use; the first holders wait for that
	filled       sync.Once
}

// visit holds a slot for a while.
func (s *slotStress) visit(src multilock.Source) {
	slot, err := lockgroup.AcquireSlot(s.Context(), src, "x", s.slots, multilock.Options{Poll: 50 * time.Millisecond})
	if err != nil {
		s.Error(err)
		return
	}
	now := int(s.inside.Add(1))
	if now > s.slots || s.in[slot.Number].Add(1) != 1 {
		s.Errorf("%d are inside, one of them in slot %d", now, slot.Number)
	}
	if err := slot.Verify(s.Context()); err != nil {
		s.Error(err)
	}
	if now == s.slots {
		s.filled.Do(func() { close(s.full) })
	}
	select {
	case <-s.full:
	case <-time.After(time.Minute):
		s.Error("not all slots get into use")
	}
	time.Sleep(5 * time.Millisecond) // the work
	s.in[slot.Number].Add(-1)
	s.inside.Add(-1)
	if err := slot.Release(context.Background()); err != nil {
		s.Error(err)
	}
}
