package report_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/report"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// Ticks that are caught up with under one lock are runs of their own, in their order, and what
// was missed before is told once, however many attempts a tick had.
func TestTicksUnderOneLock(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	code := func(n int) *int { return &n }
	by := process.Identity{Host: "n1", PID: 7}
	event := func(what source.EventKind, after time.Duration, tick, attempt, exit int) source.Event {
		return source.Event{
			What: what, Name: "x", Token: "t", By: by, Time: noon.Add(after), Tick: noon.Add(time.Duration(tick) * time.Hour), Attempt: attempt, Exit: code(exit), Held: time.Second,
		}
	}
	first, again := event(source.EventCommitted, time.Second, 4, 1, 3), event(source.EventCommitted, 2*time.Second, 4, 2, 0)
	first.Missed, again.Missed = 3, 3
	in := report.Input{
		Made: noon.Add(time.Hour),
		Events: []source.Event{
			event(source.EventAcquired, 0, 4, 1, 0), first, again, event(source.EventCommitted, 3*time.Second, 5, 1, 0),
			event(source.EventReleased, 4*time.Second, 6, 1, 143), // told to end at the third
		},
		Results: []multilock.Result{{Name: "x", Token: "t", By: by, Attempt: 1, Final: true, Tick: noon.Add(5 * time.Hour), Start: noon.Add(2 * time.Second), Duration: time.Second}},
	}
	built := report.Build(in)
	require.Len(t, built.Jobs, 1)
	var told [][]any
	for _, run := range built.Jobs[0].Runs {
		told = append(told, []any{run.Tick.Hour(), run.Attempt, run.State})
	}
	require.Equal(t, [][]any{{16, 1, report.Failed}, {16, 2, report.Done}, {17, 1, report.Done}, {18, 1, report.Interrupted}}, told)
	require.Equal(t, 3, built.Jobs[0].Missed)
	require.Equal(t, 3, built.Summary.Missed)
	page, err := report.Page(built)
	require.NoError(t, err)
	require.Contains(t, string(page), "Ticks missed")
}
