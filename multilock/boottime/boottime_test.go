package boottime_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/boottime"
)

func TestElapsedFollowsTheBubbleClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := boottime.Now()
		time.Sleep(time.Hour)
		require.GreaterOrEqual(t, start.Elapsed(), time.Hour)
		require.LessOrEqual(t, start.Add(2*time.Hour).Elapsed(), time.Duration(0))
	})
}

func TestZeroInstant(t *testing.T) {
	require.True(t, boottime.Instant{}.IsZero())
	require.False(t, boottime.Now().IsZero())
}
