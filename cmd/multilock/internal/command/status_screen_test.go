package command

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/cmd/multilock/internal/survey"
)

func lockOn(host, name, state string, age float64) show.Lock {
	return show.Lock{Name: name, State: state, Host: host, Age: &age, Silence: &age, Command: "work " + name, Why: "evidence"}
}

// busyGroup has holders on two hosts, two of them without heartbeats, and failed jobs.
func busyGroup() statusReport {
	return statusReport{
		Group: "g", where: "g",
		Locks: []show.Lock{
			lockOn("n2", "a", "held", 10), lockOn("n10", "b", "held", 30), lockOn("n2", "c", "held", 20), lockOn("n1", "gone", "dead", 5), lockOn("n1", "quiet", "suspect", 5),
		},
		Results: &show.Results{Done: 5, Failed: 1, Retry: 2, List: []show.Result{
			{Name: "again", State: show.ResultRetry, Exit: 1, Attempt: 1, Host: "n1"}, {Name: "bad", State: show.ResultFailed, Exit: 3, Attempt: 2, Host: "n9", Why: "because"},
			{Name: "c", State: show.ResultRetry, Exit: 1, Attempt: 2, Host: "n1"}, {Name: "part", State: show.ResultDone, Output: "incomplete"},
		}},
	}
}

func rowNames(rows []statusRow) (names []string) {
	for _, row := range rows {
		names = append(names, row.name)
	}
	return names
}

// What needs attention comes first, in any order of the other holders.
func TestOrderOfTheScreen(t *testing.T) {
	trouble := []string{"gone", "quiet", "bad", "again"}
	for order, want := range map[rowOrder][]string{byHost: {"a", "c", "b"}, byName: {"a", "b", "c"}, byTime: {"b", "c", "a"}} {
		rows, counts := rowsOf(busyGroup().reports(), order, false)
		require.Equal(t, append(trouble[:4:4], want...), rowNames(rows), order)
		require.Equal(t, statusCounts{held: 3, silent: 2, failed: 1, retry: 2, ended: 6}, counts)
		require.Equal(t, []console.Color{console.Red, console.Yellow, console.Red, console.Yellow, console.Plain}, []console.Color{rows[0].color, rows[1].color, rows[2].color, rows[3].color, rows[4].color})
	}
	rows, _ := rowsOf(busyGroup().reports(), byHost, false)
	require.Equal(t, []any{"c", "held", "n2", "-", "3"}, rows[5].cells[:5], "its third attempt runs")
	require.Equal(t, []any{"a", "held", "n2", "-", "-"}, rows[4].cells[:5])
	require.Equal(t, []any{"bad", "failed", "n9", "-", 2}, rows[2].cells[:5])
	require.Regexp(t, `^exit 3, .* ago: because$`, rows[2].cells[8])

	rows, _ = rowsOf(busyGroup().reports(), byHost, true)
	require.NotContains(t, rowNames(rows), "bad", "--results lists it below")
	rows, _ = rowsOf([]statusReport{busyGroup(), {Group: "h", Locks: []show.Lock{lockOn("n1", "a", "held", 1)}}}, byName, false)
	require.Equal(t, []string{"g: a", "g: b", "g: c", "h: a"}, rowNames(rows)[4:])
}

// A chunk with known running jobs has a row for each of them instead of its own.
func TestJobsOfAChunkOnTheScreen(t *testing.T) {
	chunk := lockOn("n1", "#jobs-1-4", "suspect", 100)
	long, short := 90.0, 2.0
	chunk.Running = []show.Running{{Name: "one", Number: 1, Slot: 1, Attempt: 1, Age: &long, Command: "first"}, {Name: "three", Number: 3, Slot: 2, Attempt: 2, Age: &short, Command: "third"}}
	r := statusReport{Locks: []show.Lock{chunk}, Results: &show.Results{Retry: 1, List: []show.Result{{Name: "three", State: show.ResultRetry}}}}
	rows, counts := rowsOf(r.reports(), byTime, false)
	require.Equal(t, statusCounts{silent: 1, retry: 1}, counts)
	require.Equal(t, []string{"one", "three"}, rowNames(rows), "the longest first, and each once")
	require.Equal(t, []any{"three", "suspect", "n1", 2, 2, "2s", "1m40s", "third", "evidence"}, rows[1].cells)
	require.Equal(t, console.Yellow, rows[1].color)
	require.Equal(t, []string{"three"}, rowNames(found(rows, "thi")))
}

// The search text can contain any characters, and only rows with it are shown.
func TestFindOnTheScreen(t *testing.T) {
	w := &watching{o: &statusOptions{}, keys: make(chan byte), paged: true, last: busyGroup()}
	last := func() string { lines := w.lines(100, 40); return lines[len(lines)-1].Text }
	w.turn('/')
	for _, key := range []byte("qü\x7f\x7fn9") {
		w.typed(key)
	}
	require.Equal(t, "find: n9_  (Enter, Esc)", last())
	w.typed('\r')
	require.Contains(t, last(), "/ find (n9)")
	lines := w.lines(100, 40)
	require.True(t, strings.HasPrefix(lines[3].Text, "bad"), lines)
	require.Len(t, lines, 6, "and the results and the keys")
	w.turn('/')
	w.typed('%')
	require.Equal(t, `nothing has the text "%"`, w.lines(100, 40)[2].Text)
	w.typed('\x1b')
	require.Contains(t, last(), "/ find  space")
	require.Greater(t, len(w.lines(100, 40)), 6)
}

// Many failures leave room for the holders; the filter shows all failures.
func TestFailuresOnTheScreen(t *testing.T) {
	r := busyGroup()
	for n := range 30 {
		r.Results.List = append(r.Results.List, show.Result{Name: fmt.Sprint("f", n), State: show.ResultFailed, Attempt: 1})
	}
	rows, _ := rowsOf(r.reports(), byHost, false)
	kept, more := filtered(rows, false)
	require.Len(t, kept, 2+maxFailedRows+3)
	require.Equal(t, 32-maxFailedRows, more)
	kept, more = filtered(rows, true)
	require.Len(t, kept, 2+32)
	require.Zero(t, more)
	require.NotContains(t, rowNames(kept), "a")
}

// No line is wider than the screen, and its first lines have the important counts, on any width.
func TestScreenFits(t *testing.T) {
	r := busyGroup()
	r.Results.Batch = &survey.Progress{Jobs: 40, Done: 5, Failed: 1, Retry: 2, Pending: 32, Rate: 0.5, Left: 68}
	w := &watching{o: &statusOptions{}, keys: make(chan byte), paged: true, last: r}
	now := time.Now()
	w.pace.samples = []paceSample{{now.Add(-10 * time.Second), 1}, {now.Add(-5 * time.Second), 2}, {now, 6}}
	for columns := 20; columns < 200; columns++ {
		lines := w.lines(columns, 24)
		require.Less(t, len(lines), 24)
		for _, line := range lines {
			require.LessOrEqual(t, len([]rune(line.Text)), columns)
		}
	}
	lines := w.lines(60, 40)
	require.Regexp(t, `^\d\d:\d\d:\d\d  3 held, 2 silent, 1 failed, 2 to be retried$`, lines[0].Text)
	require.Equal(t, "[#........] (6/40) 15 % ended, 0.5 jobs/s, about 1m08s left", lines[1].Text)
	require.Equal(t, "(6/40) 15 % ended, 0.5 jobs/s, about 1m08s left", w.lines(55, 40)[1].Text)
	require.Equal(t, "▂█ up to 0.8 jobs/s, last 10s", lines[2].Text)
	require.Contains(t, lines[4].Text, "NAME")
	require.True(t, strings.HasPrefix(lines[5].Text, "gone"))
	require.Equal(t, "s sort (host)  f failed only  / find  space b page  q quit", lines[len(lines)-1].Text)

	w.trouble = "the file server does not reply"
	require.Equal(t, console.ScreenLine{Text: w.trouble, Color: console.Yellow}, w.lines(60, 40)[1])
}

// On a screen of any height, and with any number of groups, there is room for rows and keys.
func TestLowScreen(t *testing.T) {
	var all allReport
	for n := range 50 {
		r := busyGroup()
		r.Group = fmt.Sprint("g", n)
		all.Groups = append(all.Groups, r)
	}
	for _, last := range []observation{busyGroup(), all} {
		w := &watching{o: &statusOptions{}, keys: make(chan byte), paged: true, last: last}
		for height := 4; height < 40; height++ {
			lines := w.lines(80, height)
			require.Less(t, len(lines), height)
			require.Contains(t, lines[len(lines)-1].Text, "q quit")
			rows := 0
			for _, line := range lines {
				if strings.Contains(line.Text, " n1 ") || strings.Contains(line.Text, " n2 ") || strings.Contains(line.Text, " n10 ") {
					rows++
				}
			}
			require.GreaterOrEqual(t, rows, min(max(1, (height-6)/4), 5), "%d rows: %v", height, lines)
		}
		require.Len(t, w.lines(80, 1), 1)
		require.Len(t, w.lines(80, 3), 2)
	}
}

// The rate is drawn after jobs have ended, and restarts after results were deleted.
func TestPaceOfTheScreen(t *testing.T) {
	var p pace
	now := time.Now()
	add := func(second, ended int) { p.add(now.Add(time.Duration(second)*time.Second), ended) }
	add(0, 100)
	require.Empty(t, p.line())
	add(1, 100)
	require.Empty(t, p.line())
	add(2, 110)
	add(4, 120)
	require.Equal(t, "▁█▄ up to 10 jobs/s, last 4s", p.line())
	add(5, 3)
	require.Empty(t, p.line())
	require.Equal(t, 3, p.samples[0].ended)
	for n := range 100 {
		add(6+n, 4+n)
	}
	require.Len(t, p.samples, maxSamples)
	require.Equal(t, strings.Repeat("█", maxSamples-1)+" up to 1 jobs/s, last 40s", p.line())
}
