package parallel_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/parallel"
)

func TestEachOnce(t *testing.T) {
	for _, width := range []int{1, 3, 100} {
		var calls [50]atomic.Int64
		require.NoError(t, parallel.Do(width, len(calls), func(i int) error { calls[i].Add(1); return nil }))
		for i := range calls {
			require.Equal(t, int64(1), calls[i].Load())
		}
	}
	require.NoError(t, parallel.Do(4, 0, nil))
}

// At most, and up to, width calls run at the same time.
func TestWidth(t *testing.T) {
	var meeting sync.WaitGroup
	meeting.Add(4)
	require.NoError(t, parallel.Do(4, 4, func(int) error { meeting.Done(); meeting.Wait(); return nil }))
}

func TestFailureEndsIt(t *testing.T) {
	failure := errors.New("no")
	calls := 0
	err := parallel.Do(1, 10, func(i int) error {
		calls++
		if i == 2 {
			return failure
		}
		return nil
	})
	require.ErrorIs(t, err, failure)
	require.Equal(t, 3, calls)
}
