package lockgroup_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/lockgroup"
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

// What somebody else holds is tried again, ever more rarely, and needs no news to
// be found done.
func TestBatchWaitsForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, ran := newVenue(), newRuns()
		v.hold("job002", alive("node7"))
		after(5*time.Minute, func() {
			v.commit(succeeded("job002"))
			v.release("job002")
		})
		start := time.Now()
		report, err := batch(t, v, ran.jobs(4, succeeds), lockgroup.BatchOptions{Workers: 3}).Run(inTime(t))
		require.NoError(t, err)
		require.Equal(t, lockgroup.BatchProgress{Total: 4, Done: 4, Ran: 3}, report.BatchProgress)
		require.Less(t, time.Since(start), 6*time.Minute)
		require.Greater(t, v.tried("job002"), 10)
		require.Less(t, v.tried("job002"), 45)
		require.Zero(t, ran.of("job002"))
		require.Less(t, v.count("follow"), 2500, "somebody who waits asks rarely")
	})
}

// The news end the wait.
func TestBatchHearsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, ran := newVenue(), newRuns()
		v.hold("job001", alive("node7"))
		start := time.Now()
		exit := 0
		after(time.Minute, func() {
			v.commit(succeeded("job001"))
			_ = v.Record(t.Context(), []source.Event{{What: source.EventCommitted, Name: "job001", Exit: &exit}})
		})
		report, err := batch(t, v, ran.jobs(2, succeeds), lockgroup.BatchOptions{}).Run(inTime(t))
		require.NoError(t, err)
		require.Equal(t, 2, report.Done)
		require.LessOrEqual(t, time.Since(start), time.Minute+2*multilock.DefaultPoll)
		require.Zero(t, v.count("result")-v.tried("job002"), "a success is taken at its word")
	})
}

// News of a failure end the wait if the result says that it is final. The lock is
// never given back here: nothing else could end it.
func TestBatchHearsOfAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, ran := newVenue(), newRuns()
		v.hold("job001", alive("node7"))
		for n, final := range []bool{false, true} {
			after(time.Duration(n+1)*time.Minute, func() {
				v.commit(failed("job001", final))
				exit := 3
				_ = v.Record(t.Context(), []source.Event{{What: source.EventCommitted, Name: "job001", Exit: &exit}})
			})
		}
		report, err := batch(t, v, ran.jobs(2, succeeds), lockgroup.BatchOptions{Retries: 1}).Run(inTime(t))
		require.ErrorIs(t, err, lockgroup.ErrNotDone)
		require.Equal(t, lockgroup.BatchProgress{Total: 2, Done: 1, Failed: 1, Ran: 1}, report.BatchProgress)
		require.True(t, report.Failures[0].Final)
	})
}

// While long jobs run, and nobody is waited for, news are asked for seldom: about
// twice for each job that ends here, to the end of the history.
func TestBatchAsksSeldomWhileJobsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const jobs, length = 50, 8 * time.Second
		v, ran := newVenue(), newRuns()
		list := ran.jobs(jobs, func(context.Context, lockgroup.BatchAttempt) error {
			time.Sleep(length)
			return nil
		})
		report, err := batch(t, v, list, lockgroup.BatchOptions{}).Run(inTime(t))
		require.NoError(t, err)
		require.Equal(t, jobs, report.Ran)
		require.LessOrEqual(t, v.count("follow"), 2*jobs+10)
		require.GreaterOrEqual(t, v.count("follow"), jobs)
	})
}

// However long a job takes, the progress of the others is heard of.
func TestBatchHearsOfOthersDuringALongJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, ran := newVenue(), newRuns()
		var b *lockgroup.Batch
		exit := 0
		b = batch(t, v, ran.jobs(70, func(context.Context, lockgroup.BatchAttempt) error {
			for i := range 70 {
				_ = v.Record(t.Context(), []source.Event{{What: source.EventCommitted, Name: fmt.Sprintf("job%03d", i+1), Exit: &exit}})
			}
			time.Sleep(time.Minute)
			if done := b.Progress().Done; done < 70 {
				t.Errorf("%d are known to be done", done)
			}
			return nil
		}), lockgroup.BatchOptions{})
		_, err := b.Run(inTime(t))
		require.NoError(t, err)
	})
}

// A silent holder is watched, and its job taken over when it is dead.
func TestBatchWatchesTheSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, ran := newVenue(), newRuns()
		v.hold("job001", alive("node7"), seen(multilock.StateSuspect, "node7"), seen(multilock.StateSuspect, "node7"), seen(multilock.StateDead, "node7"))
		report, err := batch(t, v, ran.jobs(2, succeeds), lockgroup.BatchOptions{}).Run(inTime(t))
		require.NoError(t, err)
		require.Equal(t, 2, report.Ran)
		require.Equal(t, []string{"job001"}, v.broken)
	})
}

// A job that has ended when everything is told to end has ended, however long the
// server takes to record that.
func TestBatchRecordsTheLastJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, ran := newVenue(), newRuns()
		ctx, cancel := context.WithCancelCause(inTime(t))
		list := ran.jobs(1, func(context.Context, lockgroup.BatchAttempt) error {
			v.stall(10 * time.Second)
			cancel(errWork)
			return nil
		})
		report, err := batch(t, v, list, lockgroup.BatchOptions{}).Run(ctx)
		require.NoError(t, err)
		require.Equal(t, lockgroup.BatchProgress{Total: 1, Done: 1, Ran: 1}, report.BatchProgress)
	})
}

// A result that may or may not be recorded is asked for again, under the lock.
func TestBatchUnsureCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, ran := newVenue(), newRuns()
		v.failing("commit", multilock.ErrUnsure)
		after(time.Minute, func() { v.commit(succeeded("job001")) })
		report, err := batch(t, v, ran.jobs(1, succeeds), lockgroup.BatchOptions{}).Run(inTime(t))
		require.NoError(t, err)
		require.Equal(t, lockgroup.BatchProgress{Total: 1, Done: 1}, report.BatchProgress)
	})
}

// What the source cannot do ends the batch, and the jobs that run are seen through.
func TestBatchSourceFails(t *testing.T) {
	for _, call := range []string{"publish", "follow", "results", "commit"} {
		synctest.Test(t, func(t *testing.T) {
			v, ran := newVenue(), newRuns()
			v.failing(call, errWork)
			report, err := batch(t, v, ran.jobs(9, succeeds), lockgroup.BatchOptions{}).Run(inTime(t))
			require.ErrorIs(t, err, errWork, call)
			require.Equal(t, lockgroup.BatchProgress{Total: 9}, report.BatchProgress, "nothing is done, and nothing in our hands")
		})
	}
}
