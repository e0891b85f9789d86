package command

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

func code(n int) *int { return &n }

// Memory is bounded, however many chunks and acquisitions a history names.
func TestCountsTakeLimitedMemory(t *testing.T) {
	c := newCounts("g")
	long := strings.Repeat("x", 1000)
	for n := range 200_000 {
		name := fmt.Sprint("#jobs-1-", n, long)
		c.add(source.Event{What: source.EventCommitted, Name: name, Token: "t", Chunk: &source.Chunk{Done: 1}})
	}
	require.True(t, c.overfull)
	require.Less(t, len(c.chunks)+len(c.counted), 130_000)
	many := newCounts("g")
	for n := range 200_000 { // those that end are removed
		token := fmt.Sprint(n, long)
		many.add(source.Event{What: source.EventCommitted, Name: "x", Token: token, Exit: code(0)})
		many.add(source.Event{What: source.EventReleased, Name: "x", Token: token, Exit: code(0)})
	}
	require.False(t, many.overfull)
	require.Equal(t, 200_000, many.jobs["x"].runs)
}

// A run counts once, however many events describe it.
func TestCountsOfRuns(t *testing.T) {
	const held = 3 * time.Second
	acquired := source.Event{What: source.EventAcquired, Name: "x", Token: "t", Waited: time.Second}
	toldAgain := map[string]int{"lost": 1, "crashed, refused": 1} // possibly by another host
	for name, c := range map[string]struct {
		events []source.Event
		want   count
	}{
		"a command": {
			[]source.Event{acquired, {What: source.EventReleased, Name: "x", Token: "t", Exit: code(0), Held: held}},
			count{runs: 1, waits: 1, waited: time.Second, ran: held, timed: 1, last: held, any: true},
		},
		"one that failed": {
			[]source.Event{{What: source.EventReleased, Name: "x", Token: "t", Exit: code(0), Signal: "killed", Held: held}},
			count{runs: 1, failures: 1, ran: held, timed: 1, last: held, any: true},
		},
		"a script": {
			[]source.Event{{What: source.EventReleased, Name: "x", Token: "t", Held: held}},
			count{runs: 1, ran: held, timed: 1, last: held, any: true},
		},
		"two attempts, after ticks that were missed": {
			[]source.Event{
				{What: source.EventCommitted, Name: "x", Token: "t", Attempt: 1, Exit: code(3), Held: held, Missed: 4},
				{What: source.EventCommitted, Name: "x", Token: "t", Attempt: 2, Exit: code(0), Held: held, Missed: 4},
				{What: source.EventReleased, Name: "x", Token: "t", Attempt: 2, Exit: code(0), Held: 9 * held, Missed: 4},
			},
			count{runs: 2, failures: 1, missed: 4, ran: 2 * held, timed: 2, last: held, any: true},
		},
		"told to end: it will run again": {
			[]source.Event{{What: source.EventReleased, Name: "x", Token: "t", Attempt: 1, Exit: code(143), Held: held}},
			count{},
		},
		"lost": {
			[]source.Event{{What: source.EventLost, Name: "x", Token: "t", Exit: code(0), Held: held}},
			count{runs: 1, failures: 1, losses: 1, ran: held, timed: 1, last: held, any: true},
		},
		"lost after its result was recorded": {
			[]source.Event{
				{What: source.EventCommitted, Name: "x", Token: "t", Attempt: 1, Exit: code(0), Held: held},
				{What: source.EventLost, Name: "x", Token: "t", Attempt: 1, Exit: code(0), Held: held},
			},
			count{runs: 1, losses: 1, ran: held, timed: 1, last: held, any: true},
		},
		"crashed, refused": {
			[]source.Event{{What: source.EventBroke, Name: "x", Token: "t"}, {What: source.EventRefused, Name: "x", Token: "u"}, {What: source.EventForgot, Name: "x"}},
			count{runs: 1, failures: 1, breaks: 1, refusals: 1},
		},
		"crashed, without a token": {
			[]source.Event{{What: source.EventBroke, Name: "x"}, {What: source.EventBroke, Name: "x"}},
			count{runs: 2, failures: 2, breaks: 2},
		},
		"broken, and lost by that": {
			[]source.Event{{What: source.EventBroke, Name: "x", Token: "t"}, {What: source.EventLost, Name: "x", Token: "t", Exit: code(122), Held: held}},
			count{runs: 1, failures: 1, losses: 1, breaks: 1, ran: held, timed: 1, last: held, any: true},
		},
		"the same, by clocks that differ": {
			[]source.Event{{What: source.EventLost, Name: "x", Token: "t", Exit: code(122), Held: held}, {What: source.EventBroke, Name: "x", Token: "t"}},
			count{runs: 1, failures: 1, losses: 1, breaks: 1, ran: held, timed: 1, last: held, any: true},
		},
		"crashed after its result was recorded": {
			[]source.Event{
				{What: source.EventCommitted, Name: "x", Token: "t", Attempt: 1, Exit: code(0), Held: held},
				{What: source.EventBroke, Name: "x", Token: "t"},
			},
			count{runs: 1, breaks: 1, ran: held, timed: 1, last: held, any: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			counts := newCounts("g")
			for _, e := range c.events {
				counts.add(e)
			}
			require.Equal(t, c.want, *counts.jobs["x"])
			require.Len(t, counts.counted, toldAgain[name])
		})
	}
}

// The result of a chunk is recorded repeatedly, also by a host that takes over the chunk.
func TestCountsOfChunks(t *testing.T) {
	counts := newCounts("g")
	for _, c := range []struct {
		name, token  string
		done, failed int
	}{{"#jobs-1-9", "t", 3, 0}, {"#jobs-1-9", "t", 5, 1}, {"#jobs-1-9", "u", 8, 1}, {"#jobs-10-12", "t", 3, 0}} {
		counts.add(source.Event{What: source.EventCommitted, Name: c.name, Token: c.token, Exit: code(0), Attempt: 1, Chunk: &source.Chunk{Done: c.done, Failed: c.failed}})
	}
	require.Len(t, counts.jobs, 1)
	require.Equal(t, 12, counts.jobs["#jobs"].runs)
	require.Equal(t, 1, counts.jobs["#jobs"].failures)

	// If a chunk records its attempts, each of them counts, with its duration.
	for _, c := range []source.Chunk{{Done: 2, Failed: 1, Attempts: 6, Ran: 4}, {Done: 3, Failed: 1, Attempts: 8, Ran: 5.5}} {
		counts.add(source.Event{What: source.EventCommitted, Name: "#jobs-13-16", Token: "v", Exit: code(0), Attempt: 1, Chunk: &c})
	}
	require.Equal(t, count{runs: 12 + 8, failures: 1 + 5, ran: 5500 * time.Millisecond, timed: 8}, *counts.jobs["#jobs"])
}

// Slots share a name, and names beyond the limit for a monitoring system share another.
func TestCountsOfManyNames(t *testing.T) {
	counts := newCounts("g")
	for i := range 2000 {
		counts.add(source.Event{What: source.EventReleased, Name: fmt.Sprintf("x%d#slot-1", i), Exit: code(0)})
		counts.add(source.Event{What: source.EventReleased, Name: fmt.Sprintf("x%d#slot-2", i), Exit: code(0)})
	}
	require.Len(t, counts.jobs, maxNames+1)
	require.Equal(t, 2, counts.jobs["x0"].runs)
	require.Equal(t, 2*(2000-maxNames), counts.jobs[otherNames].runs)
	require.True(t, counts.crowded)
}

// The slots of a name, the readers of a lock, and all lists each count as one job.
func TestNamesUnderWhichJobsAreCounted(t *testing.T) {
	for lock, job := range map[string]string{
		"nightly": "nightly", "gpu#slot-3": "gpu", "db.shared": "db.shared", multilock.ReaderName("db.shared", 2): "db.shared",
		"#jobs-1-64": chunkNames, "#jobs-64-1": "#jobs-64-1",
	} {
		require.Equal(t, job, jobLabel(lock))
	}
}
