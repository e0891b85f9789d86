package lockgroup_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
)

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
		report, err := batch(t, v, ran.jobs(4, succeeds), lockgroup.BatchOptions{Workers: 3}).Run(t.Context())
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
			_ = v.Record(t.Context(), []multilock.Event{{What: multilock.Committed, Name: "job001", Exit: &exit}})
		})
		report, err := batch(t, v, ran.jobs(2, succeeds), lockgroup.BatchOptions{}).Run(t.Context())
		require.NoError(t, err)
		require.Equal(t, 2, report.Done)
		require.LessOrEqual(t, time.Since(start), time.Minute+2*multilock.DefaultPoll)
		require.Zero(t, v.count("result")-v.tried("job002"), "a success is taken at its word")
	})
}

// A silent holder is watched, and its job taken over when it is dead.
func TestBatchWatchesTheSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, ran := newVenue(), newRuns()
		v.hold("job001", alive("node7"), seen(multilock.Suspect, "node7"), seen(multilock.Suspect, "node7"), seen(multilock.Dead, "node7"))
		report, err := batch(t, v, ran.jobs(2, succeeds), lockgroup.BatchOptions{}).Run(t.Context())
		require.NoError(t, err)
		require.Equal(t, 2, report.Ran)
		require.Equal(t, []string{"job001"}, v.broken)
	})
}

// A result that may or may not be recorded is asked for again, under the lock.
func TestBatchUnsureCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, ran := newVenue(), newRuns()
		v.failing("commit", multilock.ErrUnsure)
		after(time.Minute, func() { v.commit(succeeded("job001")) })
		report, err := batch(t, v, ran.jobs(1, succeeds), lockgroup.BatchOptions{}).Run(t.Context())
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
			report, err := batch(t, v, ran.jobs(9, succeeds), lockgroup.BatchOptions{}).Run(t.Context())
			require.ErrorIs(t, err, errWork, call)
			require.Zero(t, report.Done)
		})
	}
}
