package bounded_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/bounded"
)

// Waiters are durably blocked, so that time passes in a bubble, and get the turn in the order of their calls.
func TestTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turn bounded.Turn
		var order []int
		var all sync.WaitGroup
		for n := range 5 {
			all.Go(func() {
				turn.Lock()
				defer turn.Unlock()
				order = append(order, n)
				time.Sleep(time.Hour)
			})
			synctest.Wait()
		}
		all.Wait()
		require.Equal(t, []int{0, 1, 2, 3, 4}, order)
	})
}
