package report_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/report"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// Ticks that are caught up under one lock are separate runs, in order, and earlier missed ticks are
// counted once, however many attempts a tick had.
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
			event(source.EventReleased, 4*time.Second, 6, 1, 143), // asked to end during the third
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

// A recurring job has a calendar: each tick ran, was late, failed or was missed.
func TestCalendarOfARecurringJob(t *testing.T) {
	first := time.Date(2026, 1, 1, 2, 0, 0, 0, time.UTC)
	code := func(n int) *int { return &n }
	var events []source.Event
	ran := func(day, attempt, exit, missed int, after time.Duration) {
		tick := first.AddDate(0, 0, day)
		events = append(events, source.Event{
			What: source.EventCommitted, Name: "backup", Token: tick.String(), By: process.Identity{Host: "n1"}, Time: tick.Add(after), Tick: tick, Attempt: attempt,
			Exit: code(exit), Held: time.Minute, Missed: missed,
		})
	}
	for day := range 70 {
		ran(day, 1, 0, 0, time.Hour)
	}
	ran(70, 1, 3, 0, time.Hour)
	ran(71, 1, 3, 0, time.Hour)
	ran(71, 2, 0, 0, 2*time.Hour)
	ran(74, 1, 0, 2, 13*time.Hour)
	in := report.Input{Made: first.AddDate(0, 0, 77), Events: events, Results: []multilock.Result{{
		Name: "backup", Token: first.AddDate(0, 0, 74).String(), By: process.Identity{Host: "n1"}, Attempt: 1, Final: true, Every: "1d@02:00",
		Tick: first.AddDate(0, 0, 74), Start: first.AddDate(0, 0, 74).Add(13 * time.Hour),
	}}}
	page, err := report.Page(report.Build(in))
	require.NoError(t, err)
	require.Regexp(t, `<dt><bdi>backup</bdi> <span class="quiet">every 1d@02:00</span> <span class="quiet small">54 ran, 1 late, 4 missed, 1 failed</span></dt>`, string(page))
	var cells []string
	for _, found := range regexp.MustCompile(`<li class="t-(\w+)" title="([^"]*)">.</li>`).FindAllStringSubmatch(string(page), -1) {
		require.Contains(t, found[2], found[1])
		cells = append(cells, found[2])
	}
	require.Len(t, cells, 60)
	require.Equal(t, []string{
		"2026-03-11 02:00 UTC: ran, exit 0", "2026-03-12 02:00 UTC: failed, exit 3", "2026-03-13 02:00 UTC: ran, exit 0 at attempt 2",
		"2026-03-14 02:00 UTC: missed", "2026-03-15 02:00 UTC: missed", "2026-03-16 02:00 UTC: late, by 13h00m",
		"2026-03-17 02:00 UTC: missed", "2026-03-18 02:00 UTC: missed",
	}, cells[52:])

	require.NotContains(t, string(page), "Jobs that have ended", "a recurring job does not end")
	require.Contains(t, string(page), "Durations of <b>")

	in.Results = nil // without its schedule, no tick is late, and nothing after the last one is known
	page, err = report.Page(report.Build(in))
	require.NoError(t, err)
	require.Contains(t, string(page), "57 ran, 2 missed, 1 failed")
	require.Equal(t, 2, strings.Count(string(page), `title="missed"`))

	in.Events[len(in.Events)-1].Missed = 1 << 40
	page, err = report.Page(report.Build(in))
	require.NoError(t, err)
	require.Contains(t, string(page), "1 ran, 59 missed")
}
