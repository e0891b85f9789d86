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
)

// Sixteen contenders share three slots. A witness sees never more than three
// inside, and never two in one slot; everybody comes in again and again. The
// spread is printed.
func TestSlotsUnderStress(t *testing.T) {
	const contenders, slots, all = 16, 3, 480
	w := &slotWitness{t: t, base: t.TempDir(), left: all, slots: slots, full: make(chan struct{})}
	var crew sync.WaitGroup
	spread := make([]slotTurns, contenders)
	for i := range contenders {
		crew.Go(func() { spread[i] = w.work() })
	}
	crew.Wait()
	var turns []int
	var longest time.Duration
	for _, s := range spread {
		turns = append(turns, s.turns)
		longest = max(longest, s.longest)
	}
	t.Logf("turns of each: %v (an even share is %d), longest wait %s, all %d slots were in use at once",
		slices.Sorted(slices.Values(turns)), all/contenders, longest.Round(time.Millisecond), slots)
	require.Positive(t, slices.Min(turns), "somebody starved")
}

type slotWitness struct {
	t      *testing.T
	base   string
	slots  int
	mu     sync.Mutex
	left   int
	inside atomic.Int32
	full   chan struct{} // closed when all slots are in use; the first ones wait for that
	filled sync.Once
	in     [lockgroup.MaxSlots + 1]atomic.Int32
}

type slotTurns struct {
	turns   int
	longest time.Duration
}

// more says whether there is another turn to take.
func (w *slotWitness) more() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left--
	return w.left >= 0 && !w.t.Failed()
}

func (w *slotWitness) work() (s slotTurns) {
	src, err := fslock.Open(fslock.Options{Base: w.base})
	if err != nil {
		w.t.Error(err)
		return s
	}
	defer src.Close()
	for w.more() {
		start := time.Now()
		slot, err := lockgroup.AcquireSlot(w.t.Context(), src, "x", w.slots, multilock.Options{Poll: 50 * time.Millisecond})
		if err != nil {
			w.t.Error(err)
			return s
		}
		s.turns, s.longest = s.turns+1, max(s.longest, time.Since(start))
		w.visit(slot)
	}
	return s
}

func (w *slotWitness) visit(slot *lockgroup.Slot) {
	now := w.inside.Add(1)
	if int(now) > w.slots || w.in[slot.Number].Add(1) != 1 {
		w.t.Errorf("%d are inside, one of them in slot %d", now, slot.Number)
	}
	if err := slot.Verify(w.t.Context()); err != nil {
		w.t.Error(err)
	}
	w.fill(now)
	time.Sleep(5 * time.Millisecond) // the work
	w.in[slot.Number].Add(-1)
	w.inside.Add(-1)
	if err := slot.Release(context.Background()); err != nil {
		w.t.Error(err)
	}
}

// fill keeps the first ones inside until every slot is in use.
func (w *slotWitness) fill(now int32) {
	if int(now) == w.slots {
		w.filled.Do(func() { close(w.full) })
	}
	select {
	case <-w.full:
	case <-time.After(time.Minute):
		w.t.Error("not all slots get into use")
	}
}
