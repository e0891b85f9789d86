package process

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestJobWatchLeavesTimeBetweenSearches(t *testing.T) {
	t.Parallel()
	searches := 0
	inVain := func() Evidence {
		searches++
		time.Sleep(time.Minute / 100) // the answer stands for ten times as long
		return evidence(Unknown, "too fast")
	}
	var w JobWatch
	for range 3 {
		require.Equal(t, "too fast", w.judge(JobMark{Token: "a"}, inVain).Why)
	}
	require.Equal(t, 1, searches)
	w.judge(JobMark{Token: "b"}, inVain)
	require.Equal(t, 2, searches, "another holder's job")
	w.until = time.Now()
	w.judge(JobMark{Token: "b"}, inVain)
	require.Equal(t, 3, searches, "when the answer is old")
}

func TestJobWatchRepeatsWhatMayChange(t *testing.T) {
	t.Parallel()
	var w JobWatch
	for want := range 3 {
		searches := want
		got := w.judge(JobMark{Token: "a"}, func() Evidence { searches++; time.Sleep(time.Millisecond); return evidence(Alive, "here") })
		require.Equal(t, Alive, got.Life)
		require.Equal(t, want+1, searches)
	}
}
