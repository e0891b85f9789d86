package report

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/internal/joblist"
)

// pageData is the timeline as the page's script reads it: rows of numbers, and one
// table of texts, because with ten thousand jobs the names of fields would be most
// of the page. Times are milliseconds since Origin, which is Unix time.
type pageData struct {
	Origin int64    `json:"origin"`
	Made   float64  `json:"made"`
	Texts  []string `json:"texts"`
	Hosts  [][]any  `json:"hosts"`
	Jobs   [][]any  `json:"jobs"`
	Runs   [][]any  `json:"runs"`
}

// The states in the order that the script knows.
var stateNumbers = []State{Done, Released, Running, Failed, Crashed, Lost, Interrupted, Open, Retry, Unknown, Forgotten}

// How much of a text is on the page. --json has all of it.
const (
	maxLine   = 300  // of what stands in a line
	maxText   = 4000 // of a command or a reason
	leastText = 200  // of those where there are very many
	allTexts  = 2 << 20
)

type packer struct {
	data  pageData
	index map[string]int
	limit int
}

func dataOf(t *Timeline) *pageData {
	p := packer{index: map[string]int{}, limit: min(max(allTexts/max(len(t.Jobs), 1), leastText), maxText)}
	p.data = pageData{Origin: t.Summary.Start.UnixMilli(), Texts: []string{}, Hosts: [][]any{}, Jobs: [][]any{}, Runs: [][]any{}}
	if t.Summary.Start.IsZero() {
		p.data.Origin = t.Made.UnixMilli()
	}
	p.data.Made = *p.time(t.Made)
	lanes := map[laneKey]int{}
	for i, label := range hostLabels(t.Hosts) {
		lanes[laneKey{t.Hosts[i].Host, t.Hosts[i].Machine}] = i
		p.data.Hosts = append(p.data.Hosts, []any{p.text(label), t.Hosts[i].Rows})
	}
	for i := range t.Jobs {
		job := &t.Jobs[i]
		p.data.Jobs = append(p.data.Jobs, []any{
			p.text(job.title()), number(job.State), job.Attempt, p.text(console.AndOutput(job.Why, job.Output)), p.text(job.Command), p.text(job.Log), job.Refused, job.Missed,
		})
		for k := range job.Runs {
			r := &job.Runs[k]
			p.data.Runs = append(p.data.Runs, p.run(i, lanes[laneKey{r.Host, r.Machine}], r))
		}
	}
	return &p.data
}

func (p *packer) run(job, host int, r *Run) []any {
	var broken []any
	if b := r.Broken; b != nil {
		broken = []any{p.time(b.Time), p.text(b.Host), b.PID, p.text(b.User), p.text(b.Why)}
	}
	return []any{
		job, host, r.Row, p.time(r.Start), p.time(r.End), milliseconds(r.Waited), number(r.State), r.Attempt, r.Exit, p.text(r.Signal),
		p.text(console.AndOutput(r.Why, r.Output)), p.text(r.Command), p.text(r.User), r.PID, r.Fence, broken, p.time(r.Tick), r.Missed,
	}
}

func number(s State) int { return slices.Index(stateNumbers, s) }

func milliseconds(seconds float64) float64 { return math.Round(seconds*1e4) / 10 }

// time is nil for a time that is not known.
func (p *packer) time(t time.Time) *float64 {
	if t.IsZero() {
		return nil
	}
	ms := float64(t.UnixMilli()-p.data.Origin) + float64(t.Nanosecond()%1e6/1e5)/10
	return &ms
}

func (p *packer) text(s string) int {
	s = shown(s, p.limit)
	i, ok := p.index[s]
	if !ok {
		i = len(p.data.Texts)
		p.index[s] = i
		p.data.Texts = append(p.data.Texts, s)
	}
	return i
}

// shown is a text as it can stand in a page: marks that turn the direction of
// writing, control characters and broken bytes are replaced, so that nothing can
// look like something else.
func shown(s string, limit int) string {
	s = s[:min(len(s), utf8.UTFMax*(limit+1))] // more than the limit in any case
	clean := strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case !unicode.IsPrint(r) && !unicode.Is(unicode.Zs, r):
			return unicode.ReplacementChar
		}
		return r
	}, s)
	if utf8.RuneCountInString(clean) <= limit {
		return clean
	}
	return string([]rune(clean)[:limit]) + "…"
}

// title is how a job is called on the page.
func (j *Job) title() string {
	if jobs, ok := joblist.ParseChunkName(j.Name); ok {
		return jobs.String()
	}
	return j.Name
}

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
	row := troubleRow{State: job.State, Name: shown(job.title(), maxLine), Why: shown(console.AndOutput(job.Why, job.Output), maxText), Command: shown(job.Command, maxText), Log: shown(job.Log, maxText)}
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
