package batch_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/lockgroup/batch"
	"github.com/multilock/go/lockgroup/internal/grouptest"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// inTime is a context for what hangs if it is wrong. A day is soon over in a bubble
// of package synctest.
func inTime(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
	t.Cleanup(cancel)
	return ctx
}

// inVenue runs a test of a batch in a bubble of time.
func inVenue(t *testing.T, test func(t *testing.T, v *grouptest.Venue, ran *runs)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, grouptest.NewVenue(), newRuns()) })
}

// What somebody else holds is tried again, ever more rarely, and needs no news to
// be found done.
func TestBatchWaitsForOthers(t *testing.T) {
	inVenue(t, func(t *testing.T, v *grouptest.Venue, ran *runs) {
		v.Hold("job002", grouptest.Alive("node7"))
		time.AfterFunc(5*time.Minute, func() {
			v.Commit(grouptest.Succeeded("job002"))
			v.Release("job002")
		})
		start := time.Now()
		report, err := prepare(t, v, ran.jobs(4, succeeds), batch.Options{Workers: 3}).Run(inTime(t))
		require.NoError(t, err)
		require.Equal(t, batch.Progress{Total: 4, Done: 4, Ran: 3}, report.Progress)
		require.Less(t, time.Since(start), 6*time.Minute)
		require.Greater(t, v.Count("look"), 10)
		require.Less(t, v.Count("look"), 45)
		require.Zero(t, ran.of("job002"))
		require.Less(t, v.Count("follow"), 2500, "somebody who waits asks rarely")
	})
}

// The news end the wait.
func TestBatchHearsOfOthers(t *testing.T) {
	inVenue(t, func(t *testing.T, v *grouptest.Venue, ran *runs) {
		v.Hold("job001", grouptest.Alive("node7"))
		start := time.Now()
		exit := 0
		time.AfterFunc(time.Minute, func() {
			v.Commit(grouptest.Succeeded("job001"))
			_ = v.Record(t.Context(), []source.Event{{What: source.EventCommitted, Name: "job001", Exit: &exit}})
		})
		report, err := prepare(t, v, ran.jobs(2, succeeds), batch.Options{}).Run(inTime(t))
		require.NoError(t, err)
		require.Equal(t, 2, report.Done)
		require.LessOrEqual(t, time.Since(start), time.Minute+2*multilock.DefaultPoll)
		require.Zero(t, v.Count("result"), "a success is taken at its word")
	})
}

// News of a failure end the wait if the result says that it is final. The lock is
// never given back here: nothing else could end it.
func TestBatchHearsOfAFailure(t *testing.T) {
	inVenue(t, func(t *testing.T, v *grouptest.Venue, ran *runs) {
		v.Hold("job001", grouptest.Alive("node7"))
		for n, final := range []bool{false, true} {
			time.AfterFunc(time.Duration(n+1)*time.Minute, func() {
				v.Commit(grouptest.Failed("job001", final))
				exit := 3
				_ = v.Record(t.Context(), []source.Event{{What: source.EventCommitted, Name: "job001", Exit: &exit}})
			})
		}
		report, err := prepare(t, v, ran.jobs(2, succeeds), batch.Options{Retries: 1}).Run(inTime(t))
		require.ErrorIs(t, err, lockgroup.ErrNotDone)
		require.Equal(t, batch.Progress{Total: 2, Done: 1, Failed: 1, Ran: 1}, report.Progress)
		require.True(t, report.Failures[0].Final)
	})
}

// While long jobs run, and nobody is waited for, news are asked for seldom: about
// twice for each job that ends here, to the end of the history.
func TestBatchAsksSeldomWhileJobsRun(t *testing.T) {
	inVenue(t, func(t *testing.T, v *grouptest.Venue, ran *runs) {
		const jobs, length = 50, 8 * time.Second
		list := ran.jobs(jobs, func(context.Context, batch.Attempt) error {
			time.Sleep(length)
			return nil
		})
		report, err := prepare(t, v, list, batch.Options{}).Run(inTime(t))
		require.NoError(t, err)
		require.Equal(t, jobs, report.Ran)
		require.LessOrEqual(t, v.Count("follow"), 2*jobs+10)
		require.GreaterOrEqual(t, v.Count("follow"), jobs)
	})
}

// However long a job takes, the progress of the others is heard of.
func TestBatchHearsOfOthersDuringALongJob(t *testing.T) {
	inVenue(t, func(t *testing.T, v *grouptest.Venue, ran *runs) {
		var b *batch.Batch
		exit := 0
		b = prepare(t, v, ran.jobs(70, func(context.Context, batch.Attempt) error {
			for i := range 70 {
				_ = v.Record(t.Context(), []source.Event{{What: source.EventCommitted, Name: fmt.Sprintf("job%03d", i+1), Exit: &exit}})
			}
			time.Sleep(time.Minute)
			if done := b.Progress().Done; done < 70 {
				t.Errorf("%d are known to be done", done)
			}
			return nil
		}), batch.Options{})
		_, err := b.Run(inTime(t))
		require.NoError(t, err)
	})
}

// A silent holder is watched, and its job taken over when it is dead.
func TestBatchWatchesTheSilent(t *testing.T) {
	inVenue(t, func(t *testing.T, v *grouptest.Venue, ran *runs) {
		v.Hold("job001", grouptest.Alive("node7"), grouptest.Seen(multilock.StateSuspect, "node7"), grouptest.Seen(multilock.StateSuspect, "node7"), grouptest.Seen(multilock.StateDead, "node7"))
		report, err := prepare(t, v, ran.jobs(2, succeeds), batch.Options{}).Run(inTime(t))
		require.NoError(t, err)
		require.Equal(t, 2, report.Ran)
		require.Equal(t, []string{"job001"}, v.Broken)
	})
}

// A job that has ended when everything is told to end has ended, however long the
// server takes to record that.
func TestBatchRecordsTheLastJob(t *testing.T) {
	inVenue(t, func(t *testing.T, v *grouptest.Venue, ran *runs) {
		ctx, cancel := context.WithCancelCause(inTime(t))
		list := ran.jobs(1, func(context.Context, batch.Attempt) error {
			v.Stall(10 * time.Second)
			cancel(errWork)
			return nil
		})
		report, err := prepare(t, v, list, batch.Options{}).Run(ctx)
		require.NoError(t, err)
		require.Equal(t, batch.Progress{Total: 1, Done: 1, Ran: 1}, report.Progress)
	})
}

// A result that may or may not be recorded is asked for again, under the lock.
func TestBatchUnsureCommit(t *testing.T) {
	inVenue(t, func(t *testing.T, v *grouptest.Venue, ran *runs) {
		v.Fail("commit", multilock.ErrUnsure)
		time.AfterFunc(time.Minute, func() { v.Commit(grouptest.Succeeded("job001")) })
		report, err := prepare(t, v, ran.jobs(1, succeeds), batch.Options{}).Run(inTime(t))
		require.NoError(t, err)
		require.Equal(t, batch.Progress{Total: 1, Done: 1}, report.Progress)
	})
}

// What the source cannot do ends the batch, and the jobs that run are seen through.
func TestBatchSourceFails(t *testing.T) {
	for _, call := range []string{"publish", "follow", "results", "commit"} {
		inVenue(t, func(t *testing.T, v *grouptest.Venue, ran *runs) {
			v.Fail(call, errWork)
			report, err := prepare(t, v, ran.jobs(9, succeeds), batch.Options{}).Run(inTime(t))
			require.ErrorIs(t, err, errWork, call)
			require.Equal(t, batch.Progress{Total: 9}, report.Progress, "nothing is done, and nothing in our hands")
		})
	}
}
