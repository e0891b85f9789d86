package survey_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/internal/survey"
	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// listing is a source that has only a list.
type listing struct {
	source.ManifestStore

	text string
	err  error
}

func (l listing) OpenManifest(context.Context) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(l.text)), l.err
}

func chunk(from, to int, c source.Chunk) multilock.Result {
	c.From, c.To = from, to
	return multilock.Result{Name: joblist.ChunkName(source.Range{From: from, To: to}), Chunk: &c}
}

func TestEachJobOfAListIsInOneState(t *testing.T) {
	unreadable := chunk(25, 28, source.Chunk{})
	unreadable.Chunk, unreadable.Foreign = nil, "torn"
	for name, c := range map[string]struct {
		text    string
		results []multilock.Result
		held    []string
		want    survey.Progress
	}{
		"chunks": {
			text: "#chunks of 4\n" + strings.Repeat("x\ttrue\n", 30),
			results: []multilock.Result{
				chunk(1, 8, source.Chunk{Recorded: 6, Done: 4, Failed: 1, Returned: []source.Range{{From: 7, To: 8}}}), // 1 to be retried
				chunk(9, 16, source.Chunk{Recorded: 2, Done: 2}), unreadable, {Name: "nightly"}, {Name: "x"},
			},
			held: []string{"#jobs-9-16", "#jobs-7-8", "#jobs-1-8", "nightly"},
			want: survey.Progress{Jobs: 30, Done: 6, Failed: 1, Retry: 1, Unknown: 4, Claimed: 6 + 2, Pending: 10},
		},
		"removed jobs": {
			text: "#whole#chunks of 4\n" + strings.Repeat("x\ttrue\n\t\n", 15),
			results: []multilock.Result{
				chunk(1, 8, source.Chunk{Recorded: 2, Done: 1, Failed: 1, Returned: []source.Range{{From: 7, To: 8}}}),
				chunk(9, 16, source.Chunk{Recorded: 1, Done: 1}), unreadable,
			},
			held: []string{"#jobs-9-16", "#jobs-7-8", "#jobs-30-30", "#jobs-31-40"},
			want: survey.Progress{Jobs: 15, Done: 2, Failed: 1, Unknown: 2, Claimed: 3 + 1, Pending: 6},
		},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := survey.OpenList(t.Context(), listing{text: c.text})
			require.NoError(t, err)
			for _, r := range c.results {
				list.Result(r)
			}
			for _, name := range c.held {
				list.Held(name, 0)
			}
			require.Equal(t, &c.want, list.Progress())
			require.Equal(t, &c.want, list.Progress(), "asked again")
			w := c.want
			require.Equal(t, w.Jobs, w.Done+w.Failed+w.Retry+w.Unknown+w.Claimed+w.Pending)
		})
	}
}

// Results are added concurrently, while the progress is read.
func TestListIsForSeveralGoroutines(t *testing.T) {
	list, err := survey.OpenList(t.Context(), listing{text: "#chunks of 4\n" + strings.Repeat("x\ttrue\n", 1010)})
	require.NoError(t, err)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				list.Result(chunk(1, 1, source.Chunk{Recorded: 1, Done: 1}))
				list.Held("#jobs-1001-1010", 0)
				if list.Progress().Jobs != 1010 {
					panic("the list has changed")
				}
			}
		})
	}
	all.Wait()
	require.Equal(t, 800, list.Progress().Done)
	require.Equal(t, 10, list.Progress().Claimed)
}

func TestGroupWithoutAList(t *testing.T) {
	failing := errors.New("the disk is gone")
	_, err := survey.OpenList(t.Context(), listing{err: failing})
	require.ErrorIs(t, err, failing)
	for _, src := range []multilock.Source{nil, listing{}, listing{text: "#chunks of 4\n"}} {
		list, err := survey.OpenList(t.Context(), src)
		require.NoError(t, err)
		list.Result(multilock.Result{Name: "a", Start: time.Now()})
		list.Held("a", 0)
		require.Nil(t, list.Progress())
	}
}

// The rate counts the time in which a host worked on the list, and not a night in which none did. The
// remaining time is estimated while a host works on the list.
func TestPaceOfAList(t *testing.T) {
	list, err := survey.OpenList(t.Context(), listing{text: "#chunks of 4\n" + strings.Repeat("x\ttrue\n", 20) + strings.Repeat("x\tsleep 9\n", 20)})
	require.NoError(t, err)
	yesterday := time.Now().Add(-24 * time.Hour)
	for i := range 2 { // two hosts at the same time
		r := chunk(1+4*i, 4+4*i, source.Chunk{Recorded: 4, Done: 4, Attempts: 4, Ran: 40})
		r.Start, r.Duration = yesterday, 40*time.Second
		list.Result(r)
	}
	r := chunk(21, 24, source.Chunk{Recorded: 4, Done: 3, Failed: 1, Attempts: 4, Ran: 400})
	r.Start, r.Duration = yesterday.Add(20*time.Second), 60*time.Second
	list.Result(r)
	p := list.Progress()
	require.InDelta(t, 12.0/80, p.Rate, 0.001)
	require.Zero(t, p.Left, "no host works on it")

	list.Held("#jobs-9-12", 20*time.Second)
	p = list.Progress()
	require.InDelta(t, 12.0/100, p.Rate, 0.001)
	require.InDelta(t, 100*(12*10+16*100)/(8*10+4*100), p.Left, 5)
}
