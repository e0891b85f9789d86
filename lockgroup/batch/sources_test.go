package batch_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/lockgroup/batch"
	"github.com/multilock/go/lockgroup/internal/grouptest"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

// mute is a source whose history cannot be written.
type mute struct{ *fslock.Source }

var errMute = errors.New("the history cannot be written")

func (mute) Record(context.Context, []source.Event) error { return errMute }

// If progress cannot be announced, hosts still run each job once, and report the error.
// Rule: progress-map
func TestBatchWithoutNews(t *testing.T) {
	open, ran := grouptest.Opener(t), newRuns()
	var group sync.WaitGroup
	for range 2 {
		b := prepare(t, mute{open()}, ran.jobs(30, succeeds), batch.Options{Workers: 2})
		group.Go(func() {
			report, err := b.Run(grouptest.Within(t))
			toTell := report.Ran > 0 // or the other host has run all jobs
			if err != nil || report.Done != 30 || toTell && !errors.Is(report.Trouble, errMute) {
				t.Errorf("%+v %v", report, err)
			}
		})
	}
	group.Wait()
	ran.requireOnce(t, 30)
}

// A job whose result was deleted runs again.
// Rule: forget, chunks
func TestBatchAfterForget(t *testing.T) {
	open, ran := grouptest.Opener(t), newRuns()
	src := open()
	list := ran.jobs(3, succeeds)
	_, err := prepare(t, src, list, batch.Options{}).Run(grouptest.Within(t))
	require.NoError(t, err)
	lock, err := multilock.TryAcquire(t.Context(), src, "#jobs-2-2", multilock.Options{})
	require.NoError(t, err)
	require.NoError(t, lock.Forget(t.Context()))
	require.NoError(t, lock.Release(t.Context()))
	require.NoError(t, src.DropProgressMap(t.Context()))

	report, err := prepare(t, open(), list, batch.Options{}).Run(grouptest.Within(t))
	require.NoError(t, err)
	require.Equal(t, 2, report.Before)
	require.Equal(t, 2, ran.of("job002"))
}

// An unreadable result counts as run, but not as a success.
// Rule: I6, result
func TestBatchUnclearResult(t *testing.T) {
	open, ran := grouptest.Opener(t), newRuns()
	src := open()
	done := filepath.Join(src.Base(), ".multilock", "groups", fslock.DefaultGroup, "done")
	require.NoError(t, os.MkdirAll(done, 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(done, "#jobs-1-1"), []byte("rubbish\n"), 0o600))
	report, err := prepare(t, src, ran.jobs(2, succeeds), batch.Options{}).Run(grouptest.Within(t))
	require.ErrorIs(t, err, lockgroup.ErrNotDone)
	require.Equal(t, batch.Progress{Total: 2, Done: 1, Failed: 1, Before: 1, Ran: 1}, report.Progress)
	require.NotEmpty(t, report.Failures[0].Foreign)
	require.Zero(t, ran.of("job001"))
}

// Jobs run in the list's order, and a list costs few locks, unless another order is set.
// Rule: next-chunk
func TestBatchOrder(t *testing.T) {
	inOrder := func(order batch.Order) bool {
		open, ran := grouptest.Opener(t), newRuns()
		var begun []int
		src := &counting{Source: open()}
		report, err := prepare(t, src, ran.jobs(200, func(_ context.Context, a batch.Attempt) error {
			begun = append(begun, a.Seq)
			return nil
		}), batch.Options{Order: order}).Run(grouptest.Within(t))
		require.NoError(t, err)
		require.Equal(t, 200, report.Ran)
		require.Less(t, src.contended.Load(), int64(25), "few claims")
		require.Zero(t, src.read.Load())
		return slices.IsSorted(begun)
	}
	require.True(t, inOrder(batch.OrderList))
	require.False(t, inOrder(batch.OrderRandom))
}
