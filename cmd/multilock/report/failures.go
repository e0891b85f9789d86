package report

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
)

// FailureGroup are the jobs that need attention and ended in the same way on the same host.
type FailureGroup struct {
	How, Host string
	Count     int
	Jobs      []*Job // at most a share of maxTroubles, the worst first
}

// maxTroubles bounds the part of the page that every browser has to load and print, and maxGroups the
// number of groups that share it.
const maxTroubles, maxGroups = 500, 100

// Failures groups the jobs that need attention: the most frequent outcome first.
func (t *Timeline) Failures() []FailureGroup {
	type end struct{ how, host string }
	index, total := map[end]int{}, map[string]int{}
	var groups []FailureGroup
	for i := range t.Jobs {
		job := &t.Jobs[i]
		if !job.Trouble() {
			continue
		}
		e := end{job.how(), job.lastHost()}
		at, known := index[e]
		if !known {
			at = len(groups)
			index[e] = at
			groups = append(groups, FailureGroup{How: e.how, Host: e.host})
		}
		groups[at].Jobs = append(groups[at].Jobs, job)
		groups[at].Count++
		total[e.how]++
	}
	slices.SortFunc(groups, func(a, b FailureGroup) int {
		return cmp.Or(cmp.Compare(total[b.How], total[a.How]), cmp.Compare(a.How, b.How), cmp.Compare(b.Count, a.Count), natural(a.Host, b.Host))
	})
	limitGroups(groups[:min(len(groups), maxGroups)])
	for i := maxGroups; i < len(groups); i++ {
		groups[i].Jobs = nil
	}
	return groups
}

// limitGroups gives each group its share of maxTroubles. Larger groups get what smaller ones do not need.
func limitGroups(groups []FailureGroup) {
	bySize := make([]*FailureGroup, len(groups))
	for i := range groups {
		bySize[i] = &groups[i]
	}
	slices.SortStableFunc(bySize, func(a, b *FailureGroup) int { return cmp.Compare(a.Count, b.Count) })
	severity := []State{Failed, Dead, Lost, Unknown, Retry, Interrupted, Open, Done}
	left := maxTroubles
	for i, g := range bySize {
		slices.SortStableFunc(g.Jobs, func(a, b *Job) int {
			return cmp.Or(cmp.Compare(slices.Index(severity, a.State), slices.Index(severity, b.State)), natural(a.Name, b.Name))
		})
		g.Jobs = g.Jobs[:min(g.Count, left/(len(bySize)-i))]
		left -= len(g.Jobs)
	}
}

// how returns the job's outcome: "exit 3", "signal: killed", or its state if it has neither.
func (j *Job) how() string {
	if j.State == Done {
		return "output incomplete"
	}
	if n := len(j.Runs); n > 0 && j.State != Unknown {
		if text := j.Runs[n-1].exitText(); text != "" {
			return text
		}
	}
	return string(j.State)
}

func (j *Job) lastHost() string {
	if n := len(j.Runs); n > 0 {
		return j.Runs[n-1].Host
	}
	return ""
}

// groupRows is a group on the page.
type groupRows struct {
	How, Host, Count string
	Rows             []troubleRow
	More             int
	Open             bool
}

// maxOpen is how many rows are shown before a reader opens further groups.
const maxOpen = 30

// troubleRow is a job that needs attention.
type troubleRow struct {
	Index                         int // in the script's data
	State                         State
	Name, Took, Why, Log, Command string
	Tail                          string
	Ended                         *time.Time
}

// groupsOf returns the groups for the page, and how many jobs are in groups that are left out.
func groupsOf(t *Timeline) (groups []groupRows, more int) {
	index := map[*Job]int{}
	for i := range t.Jobs {
		if t.Jobs[i].Trouble() {
			index[&t.Jobs[i]] = i
		}
	}
	rowsBefore := 0
	for _, g := range t.Failures() {
		if len(g.Jobs) == 0 {
			more += g.Count
			continue
		}
		rows := groupRows{How: printable(g.How, maxLine), Host: printable(g.Host, maxLine), Count: countOf(g.Count, "job"), More: g.Count - len(g.Jobs), Open: rowsBefore < maxOpen}
		rowsBefore += len(g.Jobs)
		for _, job := range g.Jobs {
			rows.Rows = append(rows.Rows, troubleRowOf(job, index[job]))
		}
		groups = append(groups, rows)
	}
	return groups, more
}

func troubleRowOf(job *Job, index int) troubleRow {
	row := troubleRow{
		Index: index, State: job.State, Name: printable(job.title(), maxLine), Why: printable(console.AndOutput(job.Why, job.Output), maxText),
		Command: printable(job.Command, maxText), Log: printable(job.Log, maxText), Tail: printable(lastOf(job.Tail), MaxTail),
	}
	if len(job.Runs) == 0 {
		return row
	}
	last := job.Runs[len(job.Runs)-1]
	row.Ended = timeOrNil(last.End)
	if !last.Start.IsZero() && !last.End.Before(last.Start) {
		row.Took = durationText(last.End.Sub(last.Start).Seconds())
	}
	return row
}

// MaxTail is how many bytes of a job's output the page shows.
const MaxTail = 4 << 10

// lastOf returns the end of a job's output, from the beginning of a line if it has one.
func lastOf(output string) string {
	output = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(output)
	if len(output) <= MaxTail {
		return output
	}
	output = output[len(output)-MaxTail:]
	if _, rest, cut := strings.Cut(output, "\n"); cut && rest != "" {
		return rest
	}
	return output
}
