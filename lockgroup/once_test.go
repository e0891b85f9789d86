package lockgroup_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/lockgroup/internal/grouptest"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
)

var errWork = errors.New("the disk is full")

// work counts its runs and returns the errors in turn, repeating the last one.
func work(runs *atomic.Int64, ends ...error) func(context.Context) error {
	return func(ctx context.Context) error {
		n := int(runs.Add(1))
		return ends[min(n, len(ends))-1]
	}
}

// Rule: I7
func TestOnceRunsOnce(t *testing.T) {
	open := grouptest.Opener(t)
	var runs atomic.Int64
	for range 3 {
		result, err := lockgroup.Once(t.Context(), open(), "x", lockgroup.OnceOptions{Options: multilock.Options{User: "ada", Command: "make"}}, work(&runs, nil))
		require.NoError(t, err)
		require.True(t, result.OK())
		require.Equal(t, "x", result.Name)
		require.Equal(t, "ada", result.User)
		require.Equal(t, "make", result.Command)
		require.Equal(t, 1, result.Attempt)
		require.True(t, result.Final)
	}
	require.Equal(t, int64(1), runs.Load())
}

// Rule: I1, I7
func TestOnceOfMany(t *testing.T) {
	open := grouptest.Opener(t)
	var runs atomic.Int64
	var group sync.WaitGroup
	for range 8 {
		src := open()
		group.Go(func() {
			result, err := lockgroup.Once(t.Context(), src, "x", lockgroup.OnceOptions{}, work(&runs, nil))
			if err != nil || !result.OK() {
				t.Errorf("%v %v", result, err)
			}
		})
	}
	group.Wait()
	require.Equal(t, int64(1), runs.Load())
}

// Rule: attempts
func TestOnceFails(t *testing.T) {
	open := grouptest.Opener(t)
	var runs atomic.Int64
	opt := lockgroup.OnceOptions{Retries: 1}
	result, err := lockgroup.Once(t.Context(), open(), "x", opt, work(&runs, errWork))
	var failed *lockgroup.FailedError
	require.ErrorAs(t, err, &failed)
	require.ErrorIs(t, err, errWork)
	require.Equal(t, result, failed.Result)
	require.Equal(t, 2, result.Attempt)
	require.Equal(t, 1, result.Exit)
	require.Equal(t, "the disk is full", result.Why)

	again, err := lockgroup.Once(t.Context(), open(), "x", opt, work(&runs, nil))
	require.ErrorAs(t, err, &failed)
	require.NotErrorIs(t, err, errWork, "it was not this call's work")
	require.ErrorContains(t, err, "the disk is full")
	require.Equal(t, result.Token, again.Token)
	require.Equal(t, int64(2), runs.Load())
}

// Work that was asked to stop has not failed: its error is returned, and nothing is recorded.
// Rule: attempts
func TestOnceInterrupted(t *testing.T) {
	src := grouptest.Opener(t)()
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	_, err := lockgroup.Once(ctx, src, "x", lockgroup.OnceOptions{}, func(ctx context.Context) error {
		cancel(stop)
		<-ctx.Done()
		return errWork
	})
	require.ErrorIs(t, err, stop)
	require.ErrorIs(t, err, errWork)
	_, err = src.Result(t.Context(), "x")
	require.ErrorIs(t, err, multilock.ErrNoResult)
}

// A recovered panic leaves no lock and no result.
// Rule: attempts, release
func TestOncePanics(t *testing.T) {
	open := grouptest.Opener(t)
	src := open()
	require.PanicsWithValue(t, "no more", func() {
		_, _ = lockgroup.Once(t.Context(), src, "x", lockgroup.OnceOptions{}, func(context.Context) error { panic("no more") })
	})
	var runs atomic.Int64
	_, err := lockgroup.Once(t.Context(), src, "x", lockgroup.OnceOptions{}, work(&runs, nil))
	require.NoError(t, err)
	require.Equal(t, int64(1), runs.Load())
}

// clocked is a source whose clock the test sets.
type clocked struct {
	*fslock.Source
	now time.Time
}

func (c *clocked) Now(context.Context) (time.Time, error) { return c.now, nil }

// Rule: ticks
func TestOnceEvery(t *testing.T) {
	src := &clocked{Source: grouptest.Opener(t)(), now: time.Date(2026, 1, 2, 11, 59, 57, 0, time.UTC)}
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	var runs atomic.Int64
	run := func() multilock.Result {
		result, err := lockgroup.Once(t.Context(), src, "x", lockgroup.OnceOptions{Every: mustEvery(t, "1m@0s")}, work(&runs, nil))
		require.NoError(t, err)
		return result
	}
	require.Equal(t, noon, run().Tick)
	src.now = noon.Add(29 * time.Second)
	require.Equal(t, noon.Add(-3*time.Second), run().Began)
	require.Equal(t, int64(1), runs.Load())
	src.now = noon.Add(31 * time.Second)
	require.Equal(t, noon.Add(time.Minute), run().Tick)
	require.Equal(t, int64(2), runs.Load())
	src.now = noon.Add(5 * time.Second) // a clock that was set back a little does not repeat a tick
	require.Equal(t, noon.Add(time.Minute), run().Tick)
	require.Equal(t, int64(2), runs.Load())
}

// The tick is selected at the time of the acquisition, not of the first look.
// Rule: ticks
func TestOnceEveryAfterAWait(t *testing.T) {
	open := grouptest.Opener(t)
	holder, err := multilock.TryAcquire(t.Context(), open(), "x", multilock.Options{})
	require.NoError(t, err)
	began := at(t, "2026-01-02T12:00:00Z")
	times := make(chan time.Time, 2)
	times <- began
	times <- began.Add(time.Hour)
	done := make(chan multilock.Result)
	opt := lockgroup.OnceOptions{Every: mustEvery(t, "1h@0m"), Options: multilock.Options{Poll: time.Millisecond}}
	go func() {
		result, err := lockgroup.Once(t.Context(), &scripted{open(), times}, "x", opt, func(context.Context) error { return nil })
		if err != nil {
			t.Error(err)
		}
		done <- result
	}()
	require.Eventually(t, func() bool { return len(times) == 1 }, time.Minute, time.Millisecond)
	require.NoError(t, holder.Release(t.Context()))
	result := <-done
	require.Equal(t, began.Add(time.Hour), result.Tick)
	require.Equal(t, began.Add(time.Hour), result.Began)
}

// scripted is a source whose clock shows given times in turn.
type scripted struct {
	*fslock.Source
	times <-chan time.Time
}

func (s *scripted) Now(context.Context) (time.Time, error) { return <-s.times, nil }

// Rule: none (options)
func TestOnceWithABadPlan(t *testing.T) {
	open := grouptest.Opener(t)
	for _, opt := range []lockgroup.OnceOptions{{Retries: -1}, {Every: lockgroup.EverySpan(-time.Second)}, {Every: lockgroup.EverySpan(time.Millisecond)}, {Options: multilock.Options{TTL: -1}}} {
		_, err := lockgroup.Once(t.Context(), open(), "x", opt, func(context.Context) error {
			t.Error("it ran")
			return nil
		})
		require.ErrorIs(t, err, multilock.ErrInvalid)
	}
	_, err := lockgroup.Once(t.Context(), bare{open()}, "x", lockgroup.OnceOptions{}, nil)
	require.ErrorIs(t, err, multilock.ErrUnsupported)
}

// bare is a source that keeps no results.
type bare struct{ multilock.Source }
