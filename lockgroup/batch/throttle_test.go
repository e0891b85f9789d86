package batch_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/lockgroup/batch"
	"github.com/multilock/go/lockgroup/internal/grouptest"
	"github.com/multilock/go/multilock"
)

// A busy host begins no job, and another one, which starts later, runs the jobs that it has claimed. The
// busy host notices the end, also of failures, with or without a progress map.
// Rule: give-back
func TestBusyHostLeavesItsJobs(t *testing.T) {
	for what, fails := range map[string]bool{"all end well": false, "some fail": true} {
		t.Run(what, func(t *testing.T) {
			inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) { leavesItsJobs(t, v, ran, fails) })
		})
		t.Run(what+", without a progress map", func(t *testing.T) {
			inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) { leavesItsJobs(t, v.Venue, ran, fails) })
		})
	}
}

func leavesItsJobs(t *testing.T, src multilock.Source, ran *runs, fails bool) {
	t.Helper()
	const jobs = 200
	var busy atomic.Bool
	var onBusy, late atomic.Int64
	list := func(busyHost bool) []batch.Job {
		return ran.jobs(jobs, func(_ context.Context, a batch.Attempt) error {
			if busyHost {
				onBusy.Add(1)
				if busy.Load() {
					late.Add(1)
				}
			}
			time.Sleep(10 * time.Second)
			if fails && a.Seq%7 == 0 {
				return errWork
			}
			return nil
		})
	}
	var hosts sync.WaitGroup
	start := func(b *batch.Batch) {
		hosts.Go(func() {
			report, err := b.Run(inTime(t))
			if errors.Is(err, lockgroup.ErrNotDone) != fails || err != nil && !fails || report.Done+report.Failed != jobs || report.Trouble != nil {
				t.Errorf("%+v %v", report, err)
			}
		})
	}
	first := prepare(t, src, list(true), batch.Options{Workers: 4, Busy: ifBusy(busy.Load)})
	start(first)
	time.Sleep(25 * time.Second)
	busy.Store(true)
	time.Sleep(2 * time.Second) // until the next call of Busy
	require.Equal(t, "it is busy", first.Progress().Busy)
	late.Store(0)
	since := time.Now()
	start(prepare(t, src, list(false), batch.Options{Workers: 4}))
	hosts.Wait()
	require.Zero(t, late.Load(), "it began jobs")
	require.LessOrEqual(t, onBusy.Load(), int64(16))
	ran.requireOnce(t, jobs)
	require.Less(t, time.Since(since), 12*time.Minute)
}

// After it was busy a host begins few jobs at first, because their load shows only after they start.
// Rule: none (load)
func TestNoLongerBusy(t *testing.T) {
	inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) {
		var at []int
		begin, until := time.Now(), time.Now().Add(time.Minute)
		b := prepare(t, v, ran.jobs(16, func(context.Context, batch.Attempt) error {
			ran.mu.Lock()
			at = append(at, int(time.Since(begin).Seconds()))
			ran.mu.Unlock()
			time.Sleep(time.Hour)
			return nil
		}), batch.Options{Workers: 16, Busy: ifBusy(func() bool { return time.Now().Before(until) })})
		_, err := b.Run(inTime(t))
		require.NoError(t, err)
		require.Equal(t, []int{60, 61, 61, 62, 62, 62, 62}, at[:7])
	})
}

// A single host waits, and continues by itself.
// Rule: none (load)
func TestBusyHostGoesOn(t *testing.T) {
	inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) {
		from := time.Now().Add(time.Hour)
		b := prepare(t, v, ran.jobs(20, lasts(time.Second)), batch.Options{Workers: 4, Busy: ifBusy(func() bool { return time.Now().Before(from) })})
		report, err := b.Run(inTime(t))
		require.NoError(t, err)
		require.Equal(t, 20, report.Ran)
		require.Greater(t, time.Since(from), 4*time.Second)
	})
}

func ifBusy(busy func() bool) func() string {
	return func() string { return map[bool]string{true: "it is busy"}[busy()] }
}
