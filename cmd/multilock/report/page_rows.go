package report

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
)

// troubleRow is a job that is not done, as the page shows it without scripts.
type troubleRow struct {
	State                               State
	Name, Host, Took, Why, Log, Command string
	Ended                               *time.Time
}

// maxTroubles bounds the part of the page that every reader has to load and print.
const maxTroubles = 500

// troublesOf lists the jobs that somebody should look at, the worst first.
func troublesOf(t *Timeline) (rows []troubleRow, more int) {
	var jobs []*Job
	for i := range t.Jobs {
		if t.Jobs[i].Trouble() {
			jobs = append(jobs, &t.Jobs[i])
		}
	}
	gravity := []State{Failed, Crashed, Lost, Unknown, Retry, Interrupted, Open, Done}
	slices.SortStableFunc(jobs, func(a, b *Job) int {
		return cmp.Compare(slices.Index(gravity, a.State), slices.Index(gravity, b.State))
	})
	for _, job := range jobs[:min(len(jobs), maxTroubles)] {
		rows = append(rows, troubleRowOf(job))
	}
	return rows, len(jobs) - len(rows)
}

func troubleRowOf(job *Job) troubleRow {
	row := troubleRow{State: job.State, Name: shown(job.Name, maxLine), Why: shown(console.AndOutput(job.Why, job.Output), maxText), Command: shown(job.Command, maxText), Log: shown(job.Log, maxText)}
	if len(job.Runs) == 0 {
		return row
	}
	last := job.Runs[len(job.Runs)-1]
	row.Host, row.Ended = shown(last.Host, maxLine), known(last.End)
	if !last.Start.IsZero() && !last.End.Before(last.Start) {
		row.Took = words(last.End.Sub(last.Start).Seconds())
	}
	if how := last.exitWords(); how != "" && job.State != Done {
		row.Why = strings.TrimSuffix(how+": "+row.Why, ": ")
	}
	return row
}

func (r *Run) exitWords() string {
	switch {
	case r.Signal != "":
		return "signal: " + shown(r.Signal, maxLine)
	case r.Exit != nil:
		return "exit " + strconv.Itoa(*r.Exit)
	}
	return ""
}

// hostLabels names the lanes: a machine's id is added where two have one name.
func hostLabels(hosts []Host) []string {
	times := map[string]int{}
	for _, h := range hosts {
		times[h.Host]++
	}
	labels := make([]string, len(hosts))
	for i, h := range hosts {
		labels[i] = cmp.Or(shown(h.Host, maxLine), "(unknown)")
		if times[h.Host] > 1 {
			labels[i] += " (" + cmp.Or(shown(h.Machine, 4), "?") + ")"
		}
	}
	return labels
}

// count writes a number with its thousands apart.
func count(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
