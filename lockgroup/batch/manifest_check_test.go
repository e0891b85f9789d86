package batch_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/lockgroup/batch"
	"github.com/multilock/go/lockgroup/internal/grouptest"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// A list can be extended any number of times. Its finished jobs remain done. A host with the beginning of
// the list continues with that, unless it ends where no list ended.
// Rule: add
func TestListThatGrows(t *testing.T) {
	inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) {
		list := ran.jobs(300, succeeds)
		run := func(jobs int, opt batch.Options) (batch.Report, error) {
			return prepare(t, v, list[:jobs], opt).Run(inTime(t))
		}
		barriers := map[int][]int{100: {50}, 200: {50, 100, 150}, 300: {50, 100, 150}}
		for _, jobs := range []int{100, 200, 300} {
			report, err := run(jobs, batch.Options{Workers: 2, Add: true, Barriers: barriers[jobs]})
			require.NoError(t, err)
			require.Equal(t, 100, report.Ran)
		}
		for jobs := range barriers {
			report, err := run(jobs, batch.Options{Add: true, Barriers: barriers[jobs]})
			require.NoError(t, err)
			require.Equal(t, jobs, report.Before)
			require.Zero(t, report.Ran)
		}
		var differs *batch.ManifestError
		_, err := run(250, batch.Options{Add: true, Barriers: []int{50, 100, 150}})
		require.ErrorAs(t, err, &differs)
		require.Equal(t, batch.ManifestError{Line: 251, Theirs: "job251\tmake"}, *differs)
		for jobs := range barriers {
			report, err := run(jobs, batch.Options{Barriers: barriers[jobs]})
			require.NoError(t, err, "without Add, a list that the group has or had")
			require.Equal(t, jobs, report.Before)
		}
		list = append(list, batch.Job{Name: "job301", Command: "make"})
		_, err = run(301, batch.Options{Barriers: []int{50, 100, 150}})
		require.ErrorAs(t, err, &differs)
		require.Equal(t, batch.ManifestError{Line: 301, Ours: "job301\tmake"}, *differs)
		_, err = run(300, batch.Options{Add: true, Barriers: []int{50, 150}})
		require.ErrorContains(t, err, "the same jobs with barriers after 100 150, and here with barriers after 150")
		ran.requireOnce(t, 300)
	})
}

// Of two hosts that add at the same time one finds that the other's jobs are there.
// Rule: add
func TestTwoAddAtOnce(t *testing.T) {
	inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) {
		list := ran.jobs(60, succeeds)
		_, err := prepare(t, v, list[:20], batch.Options{}).Run(inTime(t))
		require.NoError(t, err)
		ours, theirs := list[:40], slices.Concat(list[:20], list[40:])
		var hosts sync.WaitGroup
		failed := make(chan error, 6)
		for i, list := range [][]batch.Job{ours, ours, ours, theirs, theirs, theirs} {
			b := prepare(t, v, list, batch.Options{Workers: 1 + i, Add: true})
			hosts.Go(func() {
				_, err := b.Run(inTime(t))
				failed <- err
			})
		}
		hosts.Wait()
		differ := 0
		for range 6 {
			if err := <-failed; err != nil {
				require.ErrorAs(t, err, new(*batch.ManifestError))
				differ++
			}
		}
		require.Equal(t, 3, differ)
		ran.requireOnce(t, 40)
	})
}

// A list on a filesystem can grow; a source whose lists cannot grow is rejected.
// Rule: add
func TestListThatGrowsOnAFilesystem(t *testing.T) {
	open, ran := grouptest.Opener(t), newRuns()
	list := ran.jobs(30, succeeds)
	for _, jobs := range []int{3, 11, 30} {
		report, err := prepare(t, open(), list[:jobs], batch.Options{Workers: 4, Add: true}).Run(inTime(t))
		require.NoError(t, err)
		require.Equal(t, jobs, report.Done)
	}
	ran.requireOnce(t, 30)

	stays := struct{ batch.Source }{grouptest.NewVenue()}
	_, err := batch.New(stays, list, batch.Options{Add: true})
	require.ErrorIs(t, err, multilock.ErrUnsupported)
	require.ErrorContains(t, err, "the source keeps lists as they are")
}

// All hosts must have the same shell, also when a list grows.
// Rule: manifest
func TestListWithAnotherShell(t *testing.T) {
	inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) {
		list := ran.jobs(9, succeeds)
		_, err := prepare(t, v, list[:5], batch.Options{Shell: "bash -e"}).Run(inTime(t))
		require.NoError(t, err)
		_, err = prepare(t, v, list[:5], batch.Options{}).Run(inTime(t))
		require.ErrorContains(t, err, "the same jobs with shell bash -e, and here with no barriers, needs or shell")
		_, err = prepare(t, v, list, batch.Options{Shell: "bash", Add: true}).Run(inTime(t))
		require.ErrorContains(t, err, "the same jobs with shell bash -e, and here with shell bash")
		_, err = prepare(t, v, list, batch.Options{Shell: "bash -e", Add: true}).Run(inTime(t))
		require.NoError(t, err)
		ran.requireOnce(t, 9)
		_, err = batch.New(v, list, batch.Options{Shell: "two\nlines"})
		require.ErrorIs(t, err, source.ErrInvalid)
	})
}
