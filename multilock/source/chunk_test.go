package source_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// The recorded start and end of a job have the same resolution. Otherwise consecutive jobs would
// seem to overlap.
func TestTimesOfAChunksJobs(t *testing.T) {
	start := time.Date(2026, 5, 31, 2, 0, 0, 123456789, time.UTC)
	job := source.ChunkJobOf(1, source.Result{Name: "x", Attempt: 1, Start: start, Duration: 1234567 * time.Nanosecond})
	text, err := json.Marshal(job)
	require.NoError(t, err)
	var read source.ChunkJob
	require.NoError(t, json.Unmarshal(text, &read))
	r := read.Result(source.Result{})
	require.True(t, start.Truncate(time.Microsecond).Equal(r.Start), r.Start)
	require.Equal(t, 1234*time.Microsecond, r.Duration)

	require.NoError(t, json.Unmarshal([]byte(`{"i":1,"n":"x","a":1,"s":1780192800123,"d":1234}`), &job), "of an earlier version")
	job.Micros = 0
	require.True(t, start.Truncate(time.Millisecond).Equal(job.Result(source.Result{}).Start))
}

// Each attempt at a job of a chunk is recorded: the last few in full, and all of them as a count.
func TestAttemptsOfAChunksJobs(t *testing.T) {
	of := source.Result{By: process.Identity{Host: "node1", PID: 7}, Token: "t"}
	start := time.UnixMicro(1780192800123456)
	attempt := func(number, exit int) source.ChunkJob {
		return source.ChunkJobOf(1, source.Result{
			Name: "x", Attempt: number, Final: exit == 0, Exit: exit, Start: start.Add(time.Duration(number) * time.Minute), Duration: time.Second,
		})
	}
	job := attempt(2, 0).After(attempt(1, 3).On("node2"))
	all := job.Attempts(of)
	require.Len(t, all, 2)
	require.Equal(t, []any{1, 3, "node2", 0, false}, []any{all[0].Attempt, all[0].Exit, all[0].By.Host, all[0].By.PID, all[0].Final})
	require.Equal(t, []any{2, 0, "node1", 7, true}, []any{all[1].Attempt, all[1].Exit, all[1].By.Host, all[1].By.PID, all[1].Final})
	require.True(t, start.Add(time.Minute).Equal(all[0].Start))

	chunk := source.Chunk{From: 1, To: 2, Jobs: []source.ChunkJob{job, {Number: 2, Name: "y", Attempt: 1, Duration: 500_000}}}
	chunk.Count()
	require.Equal(t, []any{2, 0, 3, 2.5}, []any{chunk.Done, chunk.Failed, chunk.Attempts, chunk.Ran})

	require.Len(t, attempt(1, 0).After(job).Attempts(of), 1, "it was forgotten, and began anew")
	many := attempt(1, 1)
	for n := range 20 {
		many = attempt(n+2, 1).After(many)
	}
	all = many.Attempts(of)
	require.Len(t, all, 9)
	for i, r := range all {
		require.Equal(t, 13+i, r.Attempt)
	}
}
