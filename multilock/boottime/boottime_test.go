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
		require.Equal(t, time.Hour, start.Awake())
		require.LessOrEqual(t, start.Add(2*time.Hour).Elapsed(), time.Duration(0))
	})
}

func TestSharedGrowsWithTheInstant(t *testing.T) {
	start := boottime.Now()
	require.Equal(t, time.Hour, start.Add(time.Hour).Shared()-start.Shared())
	require.GreaterOrEqual(t, boottime.Now().Shared(), start.Shared())
}

func TestZeroInstant(t *testing.T) {
	require.True(t, boottime.Instant{}.IsZero())
	require.False(t, boottime.Now().IsZero())
}

// The clock that processes share is never behind that of an Instant.
func TestAwakeSinceBoot(t *testing.T) {
	start := boottime.Now()
	before, ok := boottime.AwakeSinceBoot()
	if !ok {
		t.Skip("there is no such clock here")
	}
	for start.Awake() < time.Millisecond {
		now, _ := boottime.AwakeSinceBoot()
		require.GreaterOrEqual(t, now, before)
	}
	after, _ := boottime.AwakeSinceBoot()
	require.Positive(t, after-before)
	require.LessOrEqual(t, after-before, start.Awake())
}
