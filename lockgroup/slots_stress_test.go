package lockgroup_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/fslock/fslocktest"
)

// Sixteen contenders share three slots. Never more than three are inside, and never two
// in one slot; everybody comes in again and again.
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
	full         chan struct{} // closed when all slots are in use; the first ones wait for that
	filled       sync.Once
}

// visit works in a slot.
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
