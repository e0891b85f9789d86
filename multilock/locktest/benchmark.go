package locktest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// Benchmark measures how long a source takes for one lock: to acquire and release it without and with
// rivals. The time is that of one cycle of one contender; locks/s counts the cycles of all.
func Benchmark(b *testing.B, f Fixture) {
	for _, rivals := range []int{0, 7} {
		b.Run(fmt.Sprintf("rivals=%d", rivals), func(b *testing.B) { benchmarkRivals(b, f, rivals) })
	}
	b.Run("held", func(b *testing.B) { benchmarkHeld(b, f) })
}

func benchmarkRivals(b *testing.B, f Fixture, rivals int) {
	open := f.Place(b)
	ctx, cancel := context.WithCancel(context.Background())
	var cycles atomic.Int64
	var wg sync.WaitGroup
	for range rivals {
		src := open()
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := cycle(ctx, src); err != nil && !errors.Is(err, context.Canceled) {
					b.Error(err)
					return
				}
				cycles.Add(1)
			}
		})
	}
	src := open()
	for b.Loop() {
		require.NoError(b, cycle(context.Background(), src))
		cycles.Add(1)
	}
	b.ReportMetric(float64(cycles.Load())/b.Elapsed().Seconds(), "locks/s")
	cancel()
	wg.Wait()
}

func cycle(ctx context.Context, src source.Source) error {
	lock, err := multilock.Acquire(ctx, src, "nightly", multilock.Options{})
	if err != nil {
		return err
	}
	return lock.Release(context.Background())
}

// benchmarkHeld measures a failed attempt, including finding the name of the holder.
func benchmarkHeld(b *testing.B, f Fixture) {
	open := f.Place(b)
	lock, err := multilock.Acquire(context.Background(), open(), "nightly", multilock.Options{})
	require.NoError(b, err)
	src := open()
	for b.Loop() {
		_, err := multilock.TryAcquire(context.Background(), src, "nightly", multilock.Options{})
		require.ErrorIs(b, err, source.ErrHeld)
	}
	require.NoError(b, lock.Release(context.Background()))
}
