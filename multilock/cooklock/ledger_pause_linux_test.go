package cooklock_test

import (
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/multilock/go/multilock/source"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/cooklock"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// paused makes a swap in which a process stands still at one operation, with all that
// it has running: others get to do their part meanwhile. The operation ends with the
// error that they return.
func paused(t *testing.T, base string, at func(faultfs.Op) bool, meanwhile func() error) (old []byte, err error) {
	t.Helper()
	register, faulty, shut, err := part{Base: base}.open()
	require.NoError(t, err)
	defer shut()
	var reached, awake atomic.Bool
	faulty.Inject(func(op faultfs.Op) error {
		switch {
		case op.Kind == "touch" && op.Phase == faultfs.Before && !awake.Load():
			return syscall.EIO // it gives no signs of life
		case !at(op) || reached.Swap(true):
			return nil
		}
		defer awake.Store(true)
		return meanwhile()
	})
	for !reached.Load() { // on a busy machine its lock may be lost before
		old, _, err = register.Swap(t.Context(), []byte("paused"))
	}
	return old, err
}

// others swap until they have done so once, and return what they replaced.
func others(t *testing.T, base, value string) (old string) {
	t.Helper()
	r := register(t, base, "nightly")
	was, _, err := locktest.UntilSwapped(2*time.Millisecond, func() ([]byte, uint64, error) { return r.Swap(t.Context(), []byte(value)) })
	require.NoError(t, err)
	return string(was)
}

func operation(phase faultfs.Phase, is func(faultfs.Op) bool) func(faultfs.Op) bool {
	return func(op faultfs.Op) bool { return op.Phase == phase && is(op) }
}

// A swap whose process others took for dead before it was made is never made.
func TestSwapIsNotMadeLate(t *testing.T) {
	base := quick(t)
	others(t, base, "first")
	_, err := paused(t, base, operation(faultfs.Before, makesSwap), func() error {
		require.Equal(t, "first", others(t, base, "second"))
		return nil
	})
	require.ErrorIs(t, err, source.ErrUnsure)
	require.NotErrorIs(t, err, source.ErrLost, "it is not a lock of the caller's that is lost")
	require.Equal(t, "second", others(t, base, "third"))
}

// One whose reply is lost, and whose process others took for dead then, was made all
// the same, though nothing is left of it. Nobody may be told that it was not.
func TestSwapThatWasMadeAndReplaced(t *testing.T) {
	base := quick(t)
	others(t, base, "first")
	_, err := paused(t, base, operation(faultfs.After, makesSwap), func() error {
		require.Equal(t, "paused", others(t, base, "second"))
		return syscall.EIO
	})
	require.ErrorIs(t, err, source.ErrUnsure)
	require.NotErrorIs(t, err, source.ErrLost)
	require.Equal(t, "second", others(t, base, "third"))
}

// One that was interrupted while it learned what is there has done nothing, and may be
// made again; also if nobody else has come meanwhile.
func TestSwapIsInterruptedBefore(t *testing.T) {
	learns := func(op faultfs.Op) bool { return op.Kind == "open" && strings.HasSuffix(op.Path, "done/nightly") }
	for name, meanwhile := range map[string]func(*testing.T, string){
		"others swap": func(t *testing.T, base string) { require.Equal(t, "first", others(t, base, "second")) },
		"nobody does": func(*testing.T, string) { pass(soon) },
	} {
		t.Run(name, func(t *testing.T) {
			base := quick(t)
			others(t, base, "first")
			_, err := paused(t, base, operation(faultfs.After, learns), func() error {
				meanwhile(t, base)
				return nil
			})
			require.ErrorIs(t, err, source.ErrHeld)
			require.NotErrorIs(t, err, source.ErrLost)
			require.NotEqual(t, "paused", others(t, base, "third"))
		})
	}
}

// Nobody waits for a swap of somebody else's. Who is refused because of it learns who
// that is, though the register shows nobody.
func TestSomebodyElseSwaps(t *testing.T) {
	base := quick(t)
	src := open(t, base, cooklock.Options{Period: time.Hour})
	first, err := paused(t, base, operation(faultfs.Before, makesSwap), func() error {
		_, err := multilock.TryAcquire(t.Context(), src, "nightly", multilock.Options{})
		var held *multilock.HeldError
		require.ErrorAs(t, err, &held)
		require.Equal(t, source.StateHeld, held.Sighting.State)
		require.Contains(t, err.Error(), ": a swap of the cooking lock: ")
		return nil
	})
	require.NoError(t, err)
	require.Nil(t, first)
	_, err = multilock.TryAcquire(t.Context(), src, "nightly", multilock.Options{})
	require.ErrorIs(t, err, source.ErrInvalid, "what was swapped in is no value of a cooking lock")
}
