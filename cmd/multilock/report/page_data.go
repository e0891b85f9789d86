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

// pageData is the timeline for the page's script: rows of numbers and one table of texts, because field names
// would be most of a page with ten thousand jobs. Times are milliseconds since Origin, a Unix time.
type pageData struct {
	Origin int64    `json:"origin"`
	Made   float64  `json:"made"`
	Texts  []string `json:"texts"`
	Hosts  [][]any  `json:"hosts"`
	Jobs   [][]any  `json:"jobs"`
	Runs   [][]any  `json:"runs"`
}

// stateNumbers has the order that the script expects.
var stateNumbers = []State{Done, Released, Running, Failed, Dead, Lost, Interrupted, Open, Retry, Unknown, Deleted}

// Limits for texts on the page. --json has the full texts.
const (
	maxLine  = 300  // one line
	maxText  = 4000 // a command or a reason
	minText  = 200  // with very many jobs
	allTexts = 2 << 20
)

type packer struct {
	data  pageData
	index map[string]int
	limit int
}

func dataOf(t *Timeline) *pageData {
	p := packer{index: map[string]int{}, limit: min(max(allTexts/max(len(t.Jobs), 1), minText), maxText)}
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

// time returns nil for an unknown time.
func (p *packer) time(t time.Time) *float64 {
	if t.IsZero() {
		return nil
	}
	ms := float64(t.UnixMilli()-p.data.Origin) + float64(t.Nanosecond()%1e6/1e5)/10
	return &ms
}

func (p *packer) text(s string) int {
	s = printable(s, p.limit)
	i, ok := p.index[s]
	if !ok {
		i = len(p.data.Texts)
		p.index[s] = i
		p.data.Texts = append(p.data.Texts, s)
	}
	return i
}

// printable makes a text safe to display: it replaces control characters, bidirectional marks and
// invalid bytes, which could disguise it.
func printable(s string, limit int) string {
	s = s[:min(len(s), utf8.UTFMax*(limit+1))] // still longer than the limit
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

// title returns the job's name on the page.
func (j *Job) title() string {
	if jobs, ok := joblist.ParseChunkName(j.Name); ok {
		return jobs.String()
	}
	return j.Name
}

func (r *Run) exitText() string {
	switch {
	case r.Signal != "":
		return "signal: " + printable(r.Signal, maxLine)
	case r.Exit != nil:
		return "exit " + strconv.Itoa(*r.Exit)
	}
	return ""
}

// hostLabels names the lanes, with a machine ID where two hosts have the same name.
func hostLabels(hosts []Host) []string {
	times := map[string]int{}
	for _, h := range hosts {
		times[h.Host]++
	}
	labels := make([]string, len(hosts))
	for i, h := range hosts {
		labels[i] = cmp.Or(printable(h.Host, maxLine), "(unknown)")
		if times[h.Host] > 1 {
			labels[i] += " (" + cmp.Or(printable(h.Machine, 4), "?") + ")"
		}
	}
	return labels
}

// count formats a number with thousands separators.
func count(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
