package show

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/survey"
	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// Result is a result in --json.
type Result struct {
	Name    string    `json:"name"`
	State   string    `json:"state"` // done, failed, retry, unknown
	Exit    int       `json:"exit"`
	Signal  string    `json:"signal,omitempty"`
	Why     string    `json:"why,omitempty"`
	Output  string    `json:"output_lost_because,omitempty"` // why its output is incomplete
	Attempt int       `json:"attempt,omitempty"`
	Tick    time.Time `json:"tick,omitzero"`
	Every   string    `json:"every,omitempty"`
	Missed  int       `json:"missed_ticks,omitempty"`
	// Succeeded is when the last success ended, by the source's clock.
	Succeeded time.Time `json:"last_success,omitzero"`
	Token     string    `json:"token,omitempty"`
	Host      string    `json:"host,omitempty"`
	PID       int       `json:"pid,omitempty"`
	User      string    `json:"user,omitempty"`
	Command   string    `json:"command,omitempty"`
	Start     time.Time `json:"start,omitzero"`
	Duration  float64   `json:"duration_seconds"`

	inChunk bool
}

// The states of a result.
const (
	ResultDone   = "done"
	ResultFailed = "failed"
	ResultRetry  = "retry" // failed, may be retried
)

// ResultOf makes the JSON form of a result.
func ResultOf(r multilock.Result) Result {
	v := Result{
		Name: r.Name, State: resultState(r), Exit: r.Exit, Signal: r.Signal, Why: r.Why, Output: r.Output, Attempt: r.Attempt, Tick: r.Tick.UTC(), Every: r.Every, Missed: r.Missed, Succeeded: r.Succeeded.UTC(), Token: r.Token,
		Host: r.By.Host, PID: r.By.PID, User: r.User, Command: r.Command, Start: r.Start.UTC(), Duration: r.Duration.Seconds(),
	}
	if r.Foreign != "" {
		v.Why = r.Foreign
	}
	return v
}

func resultState(r multilock.Result) string {
	switch {
	case r.Foreign != "":
		return StateUnknown
	case r.OK():
		return ResultDone
	case r.Final:
		return ResultFailed
	}
	return ResultRetry
}

// ExitCell formats the exit code or signal.
func (v Result) ExitCell() string {
	switch {
	case v.State == StateUnknown:
		return "?"
	case v.Signal != "":
		return console.Harmless(v.Signal)
	}
	return strconv.Itoa(v.Exit)
}

func (v Result) whyCell() string { return console.AndOutput(v.Why, v.Output) }

// EndedAgo returns the time since the job's end. It is approximate, because it compares the clocks of two
// hosts.
func (v Result) EndedAgo() string {
	if v.Start.IsZero() {
		return console.Short(source.Unknown)
	}
	end := v.Start.Add(time.Duration(v.Duration * float64(time.Second)))
	return console.Short(max(time.Since(end), 0))
}

// Results summarises the results of a group. List has the unsuccessful and incomplete results, or all that
// were requested.
type Results struct {
	Done    int      `json:"done"`
	Failed  int      `json:"failed"`
	Retry   int      `json:"retry"`
	Unknown int      `json:"unknown"`
	List    []Result `json:"jobs"`
	// Batch is the progress of the group's list, null if it has none. Its jobs are also counted above.
	Batch *survey.Progress `json:"progress,omitempty"`
}

// ReadResults reads the named results, and for chunks those of their jobs. It passes every result to list,
// but only counts those that need not be listed, because a group may have very many.
func ReadResults(ctx context.Context, src source.Ledger, names []string, keepAll KeepDone, list *survey.List) Results {
	names = inOrder(names)
	found := make([][]Result, len(names))
	var mu sync.Mutex
	sum := Results{List: []Result{}}
	whole := func(r multilock.Result) bool { return bool(keepAll) || joblist.Notable(r) }
	survey.Results(ctx, src, names, whole, func(i int, r multilock.Result) {
		list.Result(r)
		mu.Lock()
		defer mu.Unlock()
		found[i] = sum.add(r, keepAll)
	})
	sum.List = append(sum.List, slices.Concat(found...)...)
	sum.readCommands(ctx, src)
	return sum
}

// KeepDone selects whether successful results are listed, too.
type KeepDone bool

// inOrder sorts the names of results, and chunks by their position in the list.
func inOrder(names []string) []string {
	others, chunks := splitChunks(names)
	slices.SortFunc(others, Natural)
	for _, chunk := range chunks {
		others = append(others, joblist.ChunkName(chunk))
	}
	return others
}

// add counts a result, and returns what to list of it.
func (s *Results) add(r multilock.Result, keepAll KeepDone) (kept []Result) {
	if r.Chunk != nil && len(r.Chunk.Jobs) == 0 {
		s.Done += r.Chunk.Done
		return nil
	}
	joblist.EachJob(r, func(_ string, job multilock.Result) {
		v := ResultOf(job)
		v.inChunk = r.Chunk != nil
		s.count(v.State)
		if bool(keepAll) || v.State != ResultDone || v.Output != "" {
			kept = append(kept, v)
		}
	})
	return kept
}

// Add adds the results of jobs that were found in chunks.
func (s *Results) Add(ctx context.Context, src source.Ledger, found []multilock.Result) {
	for _, r := range found {
		for _, v := range s.add(r, true) {
			v.inChunk = true
			s.List = append(s.List, v)
		}
	}
	s.readCommands(ctx, src)
}

// readCommands fills in the commands of jobs in chunks.
func (s *Results) readCommands(ctx context.Context, src source.Ledger) {
	commands := survey.Commands{}
	for i := range s.List {
		if v := &s.List[i]; v.inChunk && v.Command == "" {
			commands[v.Name] = &v.Command
		}
	}
	commands.Read(ctx, src)
}

func (s *Results) count(state string) {
	switch state {
	case ResultDone:
		s.Done++
	case ResultFailed:
		s.Failed++
	case ResultRetry:
		s.Retry++
	default:
		s.Unknown++
	}
}

// Total is the number of results.
func (s *Results) Total() int { return s.Done + s.Failed + s.Retry + s.Unknown }

// maxNamed bounds how many failures a summary names.
const maxNamed = 3

// Summary formats one line: "12 done, 1 failed: NAME (exit 3 on node7, 5m ago)". With a list it begins: "12
// of 60 jobs done (21 % ended), 1 failed, 3 claimed, 44 pending".
func (s *Results) Summary() string {
	p, named := s.Batch, ""
	if names := s.named(); len(names) > 0 {
		named = ": " + strings.Join(names, ", ")
	}
	if p == nil {
		return s.counts() + named
	}
	text := BatchText(p) + named
	others := Results{Done: s.Done - p.Done, Failed: s.Failed - p.Failed, Retry: s.Retry - p.Retry, Unknown: s.Unknown - p.Unknown}
	if others.Total() > 0 {
		text += "; other jobs: " + others.counts()
	}
	return text
}

func (s *Results) counts() string {
	return fmt.Sprintf("%d done", s.Done) + Some(s.Failed, "failed") + Some(s.Retry, retryWords) + Some(s.Unknown, "unknown")
}

const retryWords = "failed and to be tried again"

// BatchText formats the progress of a list.
func BatchText(p *survey.Progress) string {
	text := fmt.Sprintf("%d of %d jobs done", p.Done, p.Jobs)
	if p.Ended() < p.Jobs {
		text += fmt.Sprintf(" (%d %% ended)", p.Percent())
	}
	return text + Some(p.Failed, "failed") + Some(p.Retry, retryWords) +
		Some(p.Unknown, "unknown") + Some(p.Claimed, "claimed") + Some(p.Pending, "pending")
}

func (s *Results) named() []string {
	var named []string
	more := 0
	for _, v := range s.List {
		switch {
		case v.State == ResultDone:
		case len(named) == maxNamed:
			more++
		default:
			named = append(named, v.describe())
		}
	}
	if more > 0 {
		named = append(named, fmt.Sprintf("and %d more (see --results)", more))
	}
	return named
}

func (v Result) describe() string {
	switch {
	case v.State == StateUnknown:
		return fmt.Sprintf("%s (%s)", Label(v.Name), console.Line(v.Why))
	case v.Signal != "":
		return fmt.Sprintf("%s (signal: %s on %s, %s ago)", console.Label(v.Name), console.Harmless(v.Signal), console.Harmless(v.Host), v.EndedAgo())
	}
	return fmt.Sprintf("%s (exit %d on %s, %s ago)", console.Label(v.Name), v.Exit, console.Harmless(v.Host), v.EndedAgo())
}

// Table lists the results.
func (s *Results) Table() (table Table) {
	table.Row("NAME", "RESULT", "EXIT", "ATTEMPT", "HOST", "USER", "ENDED", "DURATION", "COMMAND", "WHY")
	for _, v := range s.List {
		table.Row(console.Label(v.Name), v.State, v.ExitCell(), v.Attempt, Dash(v.Host), Dash(v.User),
			v.EndedAgo()+" ago", console.Short(time.Duration(v.Duration*float64(time.Second))), Dash(Ellipsis(v.Command, 40)), v.whyCell())
	}
	return table
}
