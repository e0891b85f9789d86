package batch_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/lockgroup/batch"
	"github.com/multilock/go/lockgroup/internal/grouptest"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// inTime returns a context with a timeout of a day, which passes quickly in a synctest bubble.
func inTime(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
	t.Cleanup(cancel)
	return ctx
}

// inVenue runs a batch test in a synctest bubble, with a progress map and without one.
func inVenue(t *testing.T, test func(t *testing.T, src batch.Source, v *grouptest.Venue, ran *runs)) {
	t.Helper()
	t.Run("with a map", func(t *testing.T) {
		inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) { test(t, v, v.Venue, ran) })
	})
	t.Run("without a map", func(t *testing.T) {
		inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) { test(t, v.Venue, v.Venue, ran) })
	})
}

// commits acts as another host that records one attempt at a job of a chunk of its own.
func commits(v *grouptest.Venue, number, exit int, retry bool) {
	v.Commit(chunkOf(number, number, source.ChunkJob{Number: number, Name: fmt.Sprintf("job%03d", number), Attempt: 1, Exit: exit, Retry: retry}))
}

// A chunk of another host is inspected again, at growing intervals, until it is done.
// Rule: next-chunk
func TestBatchWaitsForOthers(t *testing.T) {
	inVenue(t, func(t *testing.T, src batch.Source, v *grouptest.Venue, ran *runs) {
		v.Hold("#jobs-2-2", grouptest.Alive("node7"))
		time.AfterFunc(5*time.Minute, func() {
			commits(v, 2, 0, false)
			v.Release("#jobs-2-2")
		})
		start := time.Now()
		report, err := prepare(t, src, ran.jobs(4, succeeds), batch.Options{Workers: 3}).Run(inTime(t))
		require.NoError(t, err)
		require.Equal(t, batch.Progress{Total: 4, Done: 4, Ran: 3}, report.Progress)
		require.Less(t, time.Since(start), 6*time.Minute)
		require.Greater(t, v.Count("look"), 10)
		require.Less(t, v.Count("look"), 45)
		require.Zero(t, ran.of("job002"))
		require.Less(t, v.Count("results")+v.Count("read board"), 100, "an idle host asks rarely")
	})
}

// Without a progress map a host finds in a listing that another one has recorded a final result, even if
// the lock is never released. A failure that may be retried is not final.
// Rule: no-map
func TestBatchLearnsOfOthersByListing(t *testing.T) {
	for _, exit := range []int{0, 3} {
		inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) {
			v.Hold("#jobs-1-1", grouptest.Alive("node7"))
			time.AfterFunc(time.Minute, func() { commits(v.Venue, 1, 3, true) })
			time.AfterFunc(2*time.Minute, func() { commits(v.Venue, 1, exit, false) })
			start := time.Now()
			report, err := prepare(t, v.Venue, ran.jobs(2, succeeds), batch.Options{Retries: 1}).Run(inTime(t))
			require.Equal(t, exit != 0, errors.Is(err, lockgroup.ErrNotDone), err)
			require.Equal(t, 1, ran.of("job002"))
			require.Zero(t, ran.of("job001"))
			require.Equal(t, 1+min(exit, 1), report.Ran+report.Failed)
			require.GreaterOrEqual(t, time.Since(start), 2*time.Minute)
			require.Less(t, time.Since(start), 3*time.Minute)
		})
	}
}

// While long jobs run and no host waits, the results are listed rarely.
// Rule: no-map
func TestBatchListsRarelyWhileJobsRun(t *testing.T) {
	inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) {
		const jobs = 50
		report, err := prepare(t, v.Venue, ran.jobs(jobs, lasts(8*time.Second)), batch.Options{}).Run(inTime(t))
		require.NoError(t, err)
		require.Equal(t, jobs, report.Ran)
		require.LessOrEqual(t, v.Count("results"), jobs)
		require.LessOrEqual(t, v.Count("try"), jobs)
	})
}

// However long a job takes, a host notices the progress of others.
// Rule: no-map
func TestBatchLearnsOfOthersDuringALongJob(t *testing.T) {
	inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) {
		var b *batch.Batch
		b = prepare(t, v.Venue, ran.jobs(8, func(context.Context, batch.Attempt) error {
			for n := 2; n <= 8; n++ {
				v.Hold(joblist.ChunkName(source.Range{From: n, To: n}), grouptest.Alive("node7"))
				commits(v.Venue, n, 0, false)
			}
			time.Sleep(time.Minute)
			if done := b.Progress().Done; done < 4 {
				t.Errorf("%d are known to be done", done)
			}
			return nil
		}), batch.Options{})
		_, err := b.Run(inTime(t))
		require.NoError(t, err)
		require.Equal(t, 1, ran.names())
	})
}

// A holder without heartbeats is inspected, and its job taken over when it is dead.
// Rule: next-chunk, silence
func TestBatchWatchesTheSilent(t *testing.T) {
	inVenue(t, func(t *testing.T, src batch.Source, v *grouptest.Venue, ran *runs) {
		v.Hold("#jobs-1-1", grouptest.Alive("node7"), grouptest.Seen(multilock.StateSuspect, "node7"), grouptest.Seen(multilock.StateSuspect, "node7"), grouptest.Seen(multilock.StateDead, "node7"))
		report, err := prepare(t, src, ran.jobs(2, succeeds), batch.Options{}).Run(inTime(t))
		require.NoError(t, err)
		require.Equal(t, 2, report.Ran)
		require.Equal(t, []string{"#jobs-1-1"}, v.Broken)
	})
}

// A job that has ended when the batch is asked to end is recorded, however long the server takes.
// Rule: chunks
func TestBatchRecordsTheLastJob(t *testing.T) {
	inVenue(t, func(t *testing.T, src batch.Source, v *grouptest.Venue, ran *runs) {
		ctx, cancel := context.WithCancelCause(inTime(t))
		list := ran.jobs(1, func(context.Context, batch.Attempt) error {
			v.Stall(10 * time.Second)
			cancel(errWork)
			return nil
		})
		report, err := prepare(t, src, list, batch.Options{}).Run(ctx)
		require.NoError(t, err)
		require.Equal(t, batch.Progress{Total: 1, Done: 1, Ran: 1}, report.Progress)
	})
}

// After a commit that may have succeeded, the result is read again, under the lock.
// Rule: commit, I4
func TestBatchUnsureCommit(t *testing.T) {
	inVenue(t, func(t *testing.T, src batch.Source, v *grouptest.Venue, ran *runs) {
		v.Fail("commit", multilock.ErrUnsure)
		time.AfterFunc(time.Minute, func() { commits(v, 1, 0, false) })
		report, err := prepare(t, src, ran.jobs(1, succeeds), batch.Options{}).Run(inTime(t))
		require.NoError(t, err)
		require.Equal(t, batch.Progress{Total: 1, Done: 1}, report.Progress)
	})
}

// An error of the source ends the batch, and running jobs end first.
// Rule: chunks
func TestBatchSourceFails(t *testing.T) {
	for _, call := range []string{"publish", "results", "commit"} {
		inVenue(t, func(t *testing.T, src batch.Source, v *grouptest.Venue, ran *runs) {
			v.Fail(call, errWork)
			report, err := prepare(t, src, ran.jobs(9, succeeds), batch.Options{}).Run(inTime(t))
			require.ErrorIs(t, err, errWork, call)
			require.Equal(t, batch.Progress{Total: 9}, report.Progress, "nothing is done, and nothing in our hands")
		})
	}
}

// During the pause before a retry other jobs run, the lock stays held, and an end of the batch does not wait
// for the retry.
// Rule: attempts
func TestBatchRetriesAfterAPause(t *testing.T) {
	inVenue(t, func(t *testing.T, src batch.Source, v *grouptest.Venue, ran *runs) {
		start := time.Now()
		var again time.Duration
		list := ran.jobs(40, func(_ context.Context, a batch.Attempt) error {
			time.Sleep(time.Second)
			if a.Seq == 1 && a.Number == 1 {
				return errWork
			}
			if a.Seq == 1 {
				again = time.Since(start)
			}
			return nil
		})
		report, err := prepare(t, src, list, batch.Options{Retries: 1, RetryDelay: 20 * time.Second}).Run(inTime(t))
		require.NoError(t, err)
		require.Equal(t, 41, report.Ran)
		require.GreaterOrEqual(t, again, 16*time.Second)
		require.LessOrEqual(t, again, 45*time.Second)
		require.Less(t, time.Since(start), 60*time.Second)
	})
	inVenue(t, func(t *testing.T, src batch.Source, v *grouptest.Venue, ran *runs) {
		b := prepare(t, src, ran.jobs(2, fails), batch.Options{Retries: 1, RetryDelay: time.Hour})
		time.AfterFunc(time.Minute, b.Drain)
		start := time.Now()
		_, err := b.Run(inTime(t))
		require.ErrorIs(t, err, batch.ErrDrained)
		require.Less(t, time.Since(start), 2*time.Minute)
		require.False(t, v.IsHeld("#jobs-1-1"))
	})
}

func fails(context.Context, batch.Attempt) error { return errWork }

// No two jobs of a process begin within Delay of each other, with any number of workers.
// Rule: none (start times)
func TestBatchDelaysStarts(t *testing.T) {
	inVenue(t, func(t *testing.T, src batch.Source, _ *grouptest.Venue, ran *runs) {
		var begun []time.Time
		report, err := prepare(t, src, ran.jobs(20, func(context.Context, batch.Attempt) error {
			ran.mu.Lock()
			begun = append(begun, time.Now())
			ran.mu.Unlock()
			time.Sleep(10 * time.Second)
			return nil
		}), batch.Options{Workers: 8, Delay: time.Second}).Run(inTime(t))
		require.NoError(t, err)
		require.Equal(t, 20, report.Ran)
		for i := range begun[1:] {
			require.GreaterOrEqual(t, begun[i+1].Sub(begun[i]), time.Second)
		}
		require.Less(t, begun[19].Sub(begun[0]), 40*time.Second)
	})
}
