package command

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/multilock"
)

// statusRow is a holder or a failed job on the screen of --watch.
type statusRow struct {
	rank  int
	color console.Color
	name  string
	host  string
	age   float64
	cells []any
}

// The ranks of rows put first what needs attention.
const (
	rankSilent = iota
	rankFailed
	rankRetry
	rankHeld
)

// maxFailedRows bounds the failures above the holders. With the filter the bound is maxFilteredRows.
const maxFailedRows, maxFilteredRows = 10, 1000

// rowOrder is the order of holders that need no attention.
type rowOrder int

const (
	byHost rowOrder = iota
	byName
	byTime
	orders
)

func (o rowOrder) String() string { return [orders]string{"host", "name", "time"}[o] }

func (o rowOrder) compare(a, b statusRow) int {
	host, name := show.Natural(a.host, b.host), show.Natural(a.name, b.name)
	switch o {
	case byName:
		return cmp.Or(name, host)
	case byTime:
		return cmp.Or(cmp.Compare(b.age, a.age), host, name)
	}
	return cmp.Or(host, name)
}

// statusCounts has the counts for the first line of the screen.
type statusCounts struct{ held, silent, failed, retry, ended int }

// rowsOf returns the sorted rows and their counts.
func rowsOf(reports []statusReport, order rowOrder, listed bool) (rows []statusRow, counts statusCounts) {
	for _, r := range reports {
		group := ""
		if len(reports) > 1 {
			group = groupLabel(r.Group) + ": "
		}
		attempts := map[string]int{}
		if r.Results != nil {
			counts.failed, counts.retry = counts.failed+r.Results.Failed, counts.retry+r.Results.Retry
			counts.ended += r.Results.Done + r.Results.Failed
			for _, v := range r.Results.List {
				if v.State == show.ResultRetry {
					attempts[v.Name] = v.Attempt
				}
			}
		}
		held := map[string]bool{}
		for _, l := range r.Locks {
			held[l.Name] = true
			row := holderRow(group, l, attempts[l.Name])
			if row.rank == rankSilent {
				counts.silent++
			} else {
				counts.held++
			}
			for _, job := range l.Running {
				held[job.Name] = true
				rows = append(rows, row.of(group, l, job))
			}
			if len(l.Running) == 0 {
				rows = append(rows, row)
			}
		}
		if r.Results == nil || listed { // then they have their own table
			continue
		}
		for _, v := range r.Results.List {
			if v.State != show.ResultDone && !held[v.Name] && len(rows) < len(r.Locks)+maxFilteredRows {
				rows = append(rows, failedRow(group, v))
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b statusRow) int { return cmp.Or(cmp.Compare(a.rank, b.rank), order.compare(a, b)) })
	return rows, counts
}

func holderRow(group string, l show.Lock, failedBefore int) statusRow {
	row := statusRow{rank: rankHeld, name: group + l.Name, host: l.Host}
	switch l.State {
	case multilock.StateDead.String():
		row.rank, row.color = rankSilent, console.Red
	case multilock.StateSuspect.String(), show.StateUnknown:
		row.rank, row.color = rankSilent, console.Yellow
	}
	if l.Age != nil {
		row.age = *l.Age
	}
	try := "-"
	if failedBefore > 0 {
		try = strconv.Itoa(failedBefore + 1)
	}
	row.cells = []any{group + show.Label(l.Name), l.State, show.Dash(l.Host), "-", try, l.AgoCell(l.Age), l.AgoCell(l.Silence), show.Dash(show.Ellipsis(l.What(), 40)), l.Why}
	return row
}

// of returns the row of a job that runs under the lock.
func (row statusRow) of(group string, l show.Lock, job show.Running) statusRow {
	row.name, row.age = group+job.Name, 0
	if job.Age != nil {
		row.age = *job.Age
	}
	row.cells = []any{group + show.Label(job.Name), l.State, show.Dash(l.Host), job.Slot, job.Attempt, l.AgoCell(job.Age), l.AgoCell(l.Silence), show.Dash(show.Ellipsis(job.Command, 40)), l.Why}
	return row
}

func failedRow(group string, v show.Result) statusRow {
	row := statusRow{rank: rankFailed, color: console.Red, name: group + v.Name, host: v.Host, age: v.Duration}
	if v.State != show.ResultFailed {
		row.rank, row.color = rankRetry, console.Yellow
	}
	took := console.Short(time.Duration(v.Duration * float64(time.Second)))
	why := fmt.Sprintf("exit %s, %s ago", v.ExitCell(), v.EndedAgo())
	if v.Why != "" {
		why += ": " + v.Why
	}
	row.cells = []any{group + show.Label(v.Name), v.State, show.Dash(v.Host), "-", v.Attempt, took, "-", show.Dash(show.Ellipsis(v.Command, 40)), why}
	return row
}

// found keeps the rows with a text in one of their cells.
func found(rows []statusRow, text string) []statusRow {
	if text == "" {
		return rows
	}
	return slices.DeleteFunc(rows, func(row statusRow) bool {
		return !slices.ContainsFunc(row.cells, func(cell any) bool { return strings.Contains(fmt.Sprint(cell), text) })
	})
}

// filtered keeps a few failures above the holders; with only set, it keeps all rows that need attention.
func filtered(rows []statusRow, only bool) (kept []statusRow, more int) {
	failed := 0
	for _, row := range rows {
		isFailure := row.rank == rankFailed || row.rank == rankRetry
		switch {
		case only && row.rank == rankHeld:
			continue
		case isFailure && !only && failed == maxFailedRows:
			more++
			continue
		case isFailure:
			failed++
		}
		kept = append(kept, row)
	}
	return kept, more
}

// rowLines formats rows below a heading, each in its color.
func rowLines(rows []statusRow, columns int) (heading string, lines []console.ScreenLine) {
	var table show.Table
	table.Row("NAME", "STATE", "HOST", "SLOT", "TRY", "FOR", "HEARTBEAT", "COMMAND", "WHY")
	for _, row := range rows {
		table.Row(row.cells...)
	}
	for i, of := range table.ByRow(columns) {
		for _, line := range of {
			if i == 0 {
				heading = line
				continue
			}
			lines = append(lines, console.ScreenLine{Text: line, Color: rows[i-1].color})
		}
	}
	return heading, lines
}

// pace has the numbers of ended jobs at the last refreshes.
type pace struct {
	samples []paceSample // at most maxSamples, oldest first
}

type paceSample struct {
	at    time.Time
	ended int
}

const maxSamples = 41

func (p *pace) add(now time.Time, ended int) {
	if n := len(p.samples); n > 0 && ended < p.samples[n-1].ended { // results were deleted
		p.samples = nil
	}
	p.samples = append(p.samples, paceSample{now, ended})
	p.samples = p.samples[max(len(p.samples)-maxSamples, 0):]
}

// line draws the rate at which jobs ended, "" if none ended between the samples.
func (p *pace) line() string {
	var rates []float64
	most := 0.0
	for i := 1; i < len(p.samples); i++ {
		a, b := p.samples[i-1], p.samples[i]
		rates = append(rates, float64(b.ended-a.ended)/max(b.at.Sub(a.at).Seconds(), 1e-3))
		most = max(most, rates[i-1])
	}
	if most == 0 {
		return ""
	}
	over := p.samples[len(p.samples)-1].at.Sub(p.samples[0].at)
	return fmt.Sprintf("%s up to %.3g jobs/s, last %s", show.Spark(rates), most, console.Short(over))
}

// line is the first line of the screen. The most important counts come first, because a narrow screen
// cuts the end.
func (c statusCounts) line(now time.Time) string {
	text := now.Format(time.TimeOnly) + fmt.Sprintf("  %d held", c.held) + show.Some(c.silent, "silent") + show.Some(c.failed, "failed") + show.Some(c.retry, "to be retried")
	return strings.TrimSpace(text)
}
