package command

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/report"
	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// ledger has results of many jobs, of which one or all have failed.
type ledger struct {
	source.Ledger
	names  []string
	failed string
}

func (l ledger) Results(context.Context) ([]string, error) { return l.names, nil }

func (l ledger) Result(_ context.Context, name string) (multilock.Result, error) {
	r := multilock.Result{Name: name, Token: "t", Attempt: 1, Final: true, Start: time.Now()}
	if l.failed == name || l.failed == "all" {
		r.Exit = 1
	}
	return r, nil
}

// Very many successful jobs are only counted, unless there is more to report about them.
func TestVeryManyResults(t *testing.T) {
	l := ledger{failed: "job7"}
	for n := range maxListed + 1 {
		l.names = append(l.names, fmt.Sprint("job", n))
	}
	in := report.Input{
		Made: time.Now(), Held: []lockgroup.Holding{{Name: "job8", Observation: multilock.Observation{State: multilock.StateHeld}}},
		Events: []source.Event{{What: source.EventRefused, Name: "job9"}},
	}
	require.NoError(t, readRecorded(t.Context(), l, time.Time{}, &in))
	require.Len(t, in.Results, 3)
	timeline := report.Build(in)
	require.Len(t, timeline.Jobs, 3)
	s := timeline.Summary
	require.Equal(t, [4]int{maxListed + 1, maxListed - 1, 1, 1}, [4]int{s.Jobs, s.Done, s.Failed, s.Running})
}

// Of very many failed jobs some are listed, and the page has the number of the others.
func TestVeryManyFailures(t *testing.T) {
	l := ledger{failed: "all"}
	for n := range maxTroubled + 5 {
		l.names = append(l.names, fmt.Sprint("job", n))
	}
	in := report.Input{Made: time.Now(), Events: []source.Event{{What: source.EventRefused, Name: "job9"}}}
	require.NoError(t, readRecorded(t.Context(), l, time.Time{}, &in))
	require.Len(t, in.Results, maxTroubled+1)
	require.Len(t, in.Missing, 1)
	require.Contains(t, in.Missing[0], "4 jobs that have failed, or whose results cannot be read, are left out")
}

// chunks has the results of 400 chunks, and counts the reads of each.
type chunks struct {
	source.Ledger
	reads *atomic.Int64
}

const jobsPerChunk = 64

func (c chunks) Results(context.Context) (names []string, err error) {
	for n := range 400 {
		names = append(names, joblist.ChunkName(source.Range{From: n*jobsPerChunk + 1, To: (n + 1) * jobsPerChunk}))
	}
	return names, nil
}

func (c chunks) Result(_ context.Context, name string) (multilock.Result, error) {
	c.reads.Add(1)
	jobs, _ := joblist.ParseChunkName(name)
	chunk := source.Chunk{From: jobs.From, To: jobs.To}
	for n := jobs.From; n <= jobs.To; n++ {
		r := source.Result{Name: fmt.Sprint("job", n), Attempt: 1, Final: true, Start: time.Unix(int64(n), 0), Duration: time.Second}
		if n == 777 {
			r.Exit = 3
		}
		chunk.Jobs = append(chunk.Jobs, source.ChunkJobOf(n, r))
	}
	chunk.Count()
	return multilock.Result{Name: name, Token: "t", Attempt: 1, Final: true, Start: time.Unix(int64(jobs.From), 0), Duration: jobsPerChunk * time.Second, Chunk: &chunk}, nil
}

// Of very many jobs in chunks, all times count, but only failures are listed. Each result is read once.
func TestVeryManyJobsOfChunks(t *testing.T) {
	c := chunks{reads: new(atomic.Int64)}
	in := report.Input{Made: time.Unix(30_000, 0)}
	require.NoError(t, readRecorded(t.Context(), c, time.Time{}, &in))
	require.Equal(t, int64(400), c.reads.Load())
	kept := 0
	for _, r := range in.Results {
		kept += len(r.Chunk.Jobs)
	}
	require.Equal(t, 1, kept)
	require.Len(t, in.Missing, 1)
	require.Contains(t, in.Missing[0], "there are too many jobs to list each")
	timeline := report.Build(in)
	require.Equal(t, []int{25_600, 25_599, 1}, []int{timeline.Summary.Jobs, timeline.Summary.Done, timeline.Summary.Failed})
	page, err := report.Page(timeline)
	require.NoError(t, err)
	require.Contains(t, string(page), "Durations of <b>25,600</b> runs")
	require.Contains(t, string(page), "Jobs that have ended: <b>25,600</b>")
	require.Less(t, len(page), 1<<20)
}
