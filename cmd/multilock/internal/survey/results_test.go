package survey_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/internal/survey"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// counted has the results of two chunks, one of which can only be read as a summary, and of a job.
type counted struct {
	source.Chunks
	wholes, summaries *atomic.Int64
}

func (c counted) Result(_ context.Context, name string) (multilock.Result, error) {
	c.wholes.Add(1)
	switch name {
	case "#jobs-1-4":
		return chunk(1, 4, source.Chunk{Recorded: 1, Done: 1, Jobs: []source.ChunkJob{{Name: "a"}}}), nil
	case "#jobs-5-8":
		return multilock.Result{Foreign: "truncated"}, nil
	case "gone":
		return multilock.Result{}, multilock.ErrNoResult
	}
	return multilock.Result{}, errors.New("the disk is gone")
}

func (c counted) Summary(context.Context, string) (multilock.Result, error) {
	c.summaries.Add(1)
	return chunk(5, 8, source.Chunk{Recorded: 2, Done: 2}), nil
}

// A result that is read as a whole is read once. If that fails, a chunk's summary takes its place.
func TestWholeResultsAreReadOnce(t *testing.T) {
	c := counted{wholes: new(atomic.Int64), summaries: new(atomic.Int64)}
	found := make([]multilock.Result, 4)
	survey.Results(t.Context(), c, []string{"#jobs-1-4", "#jobs-5-8", "gone", "broken"}, nil, func(i int, r multilock.Result) { found[i] = r })
	require.Equal(t, []int64{4, 1}, []int64{c.wholes.Load(), c.summaries.Load()})
	require.Len(t, found[0].Chunk.Jobs, 1)
	require.Equal(t, []any{2, 0}, []any{found[1].Chunk.Done, len(found[1].Chunk.Jobs)})
	require.Empty(t, found[2].Name, "it was forgotten meanwhile")
	require.Equal(t, []string{"broken", "the disk is gone"}, []string{found[3].Name, found[3].Foreign})
}
