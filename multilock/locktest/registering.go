package locktest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/source"
)

// largest is the size of a value that every register must be able to store.
const largest = 3000

// RunRegister runs the tests for a register that numbers its swaps from 1 without a gap. Each call of open
// is another host's register of that name.
func RunRegister(t *testing.T, open func(t testing.TB, name string) source.Register) {
	t.Run("SetAndGet", func(t *testing.T) {
		t.Parallel()
		testSetAndGet(t, func(name string) source.Register { return open(t, name) })
	})
	t.Run("OneChain", func(t *testing.T) {
		t.Parallel()
		testOneChain(t, func(name string) source.Register { return open(t, name) })
	})
}

func testSetAndGet(t *testing.T, open func(name string) source.Register) {
	ctx := t.Context()
	a, b, other := open("a"), open("a"), open("b")
	peek := func(r source.Register, want []byte, number uint64) {
		value, n, err := r.Peek(ctx)
		require.NoError(t, err)
		require.Equal(t, want, value)
		require.Equal(t, number, n)
	}
	swap := func(r source.Register, value, want []byte, number uint64) {
		old, n, err := r.Swap(ctx, value)
		require.NoError(t, err)
		require.Equal(t, want, old)
		require.Equal(t, number, n)
	}
	peek(a, nil, 0)
	swap(a, []byte("one"), nil, 1)
	swap(b, nil, []byte("one"), 2)
	peek(a, []byte{}, 2) // an empty value is not a missing one
	swap(a, make([]byte, largest), []byte{}, 3)
	swap(b, []byte("two"), make([]byte, largest), 4)
	peek(other, nil, 0)
}

// testOneChain: concurrent swaps of several hosts form the history of one register.
func testOneChain(t *testing.T, open func(name string) source.Register) {
	const hosts, each = 6, 20
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	var mu sync.Mutex
	var events []SwapEvent
	tell := func(e SwapEvent) {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, e)
	}
	var all sync.WaitGroup
	for h := range hosts {
		register := open("cell")
		all.Go(func() {
			for i := range each {
				value := fmt.Sprintf("%d.%d", h, i)
				tell(SwapEvent{Op: "begin", Value: value, Time: Now()})
				old, n, err := register.Swap(ctx, []byte(value))
				tell(SwapAnswer(value, old, n, err))
			}
		})
	}
	all.Wait()
	confirmed, err := CheckSwaps(events)
	require.NoError(t, err)
	require.Equal(t, hosts*each, confirmed)
}

// Swapping is the operation of a sweep that swaps: an answer is true, and an error that is not
// [source.ErrUnsure] means that nothing was swapped.
func Swapping(register func(*Bench) source.Register) Operation {
	return Operation{
		Name: "swap",
		Prepare: func(b *Bench) {
			b.register = register(b)
			_, _, err := b.register.Swap(b.ctx, []byte("one"))
			require.NoError(b, err)
		},
		Do: func(b *Bench) (err error) {
			b.old, b.swaps, err = b.register.Swap(b.ctx, []byte("two"))
			return err
		},
		Check: func(b *Bench, err error) {
			now, number, peeked := register(b).Peek(b.ctx)
			require.NoError(b, peeked)
			switch {
			case err == nil:
				require.Equal(b, "one", string(b.old))
				require.Equal(b, uint64(2), b.swaps)
				require.Equal(b, "two", string(now))
				require.Equal(b, uint64(2), number)
				requireOnce(b, register(b))
			case !errors.Is(err, source.ErrUnsure):
				require.Equal(b, "one", string(now))
				require.Equal(b, uint64(1), number)
			}
		},
	}
}

// requireOnce: a late request changes nothing that others have written since.
func requireOnce(b *Bench, other source.Register) {
	old, _, err := other.Swap(b.ctx, []byte("three"))
	require.NoError(b, err)
	require.Equal(b, "two", string(old))
	b.Land()
	now, _, err := other.Peek(b.ctx)
	require.NoError(b, err)
	require.Equal(b, "three", string(now))
}
