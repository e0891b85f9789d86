package estimate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/estimate"
)

// Jobs that are left take as long as others that run the same program.
func TestKinds(t *testing.T) {
	var w estimate.Work
	for i := range 10 {
		w.Add(fmt.Sprintf("convert %d.png", i))
	}
	for i := range 4 {
		w.Add(fmt.Sprintf("/usr/bin/python3.11 fit.py %d", i))
	}
	w.Add(" python3 plot.py")

	require.Equal(t, estimate.Estimate{Left: 15 * time.Second}, w.Estimate(), "all jobs weigh the same")
	require.Zero(t, w.Estimate().Remaining(time.Hour))

	w.Ended(0, 2*time.Second)
	w.Ended(1, 4*time.Second)
	w.Begin()
	w.Ended(2, 0)
	w.Ended(10, 60*time.Second)
	e := w.Estimate()
	require.Equal(t, 3*time.Second+60*time.Second, e.Done, "since Begin; an unknown duration is the mean of its kind")
	require.Equal(t, 7*3*time.Second+3*60*time.Second+22*time.Second, e.Left, "a kind of which none has ended takes the mean of all")
	require.Equal(t, 223*time.Second, e.Remaining(63*time.Second))

	w.Skip()
	w.Ended(15, time.Hour)
	require.Equal(t, e, w.Estimate(), "a removed job takes no time")

	for i := range 15 {
		w.Ended(i, time.Second) // again, as with unreadable results
	}
	require.Zero(t, w.Estimate().Left)
}

// A list in which each line runs another program keeps a bounded number of kinds.
func TestManyKinds(t *testing.T) {
	var w estimate.Work
	for i := range 100_000 {
		w.Add(fmt.Sprintf("./run%d", i))
	}
	w.Ended(99_999, time.Minute)
	w.Ended(0, time.Second)
	require.Equal(t, time.Minute+time.Second, w.Estimate().Done)
}

// For a short list and a long one, the cost is small compared with reading them.
func BenchmarkAdd(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		var w estimate.Work
		for range 1000 {
			w.Add("python3 fit.py --seed 12")
		}
	}
}
