package show

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// Result is a result as --json shows it.
type Result struct {
	Name    string    `json:"name"`
	State   string    `json:"state"` // done, failed, retry, unknown
	Exit    int       `json:"exit"`
	Signal  string    `json:"signal,omitempty"`
	Why     string    `json:"why,omitempty"`
	Output  string    `json:"output,omitempty"` // why what it printed is not kept as a whole
	Attempt int       `json:"attempt,omitempty"`
	Tick    time.Time `json:"tick,omitzero"`
	Every   string    `json:"every,omitempty"`
	Missed  int       `json:"missed,omitempty"`
	// Succeeded is when the last success ended, by the source's clock.
	Succeeded time.Time `json:"succeeded,omitzero"`
	Token     string    `json:"token,omitempty"`
	Host      string    `json:"host,omitempty"`
	PID       int       `json:"pid,omitempty"`
	User      string    `json:"user,omitempty"`
	Command   string    `json:"command,omitempty"`
	Start     time.Time `json:"start,omitzero"`
	Duration  float64   `json:"duration_seconds"`
}

// The states of a result.
const (
	ResultDone   = "done"
	ResultFailed = "failed"
	ResultRetry  = "retry" // it failed, and may be tried again
)

// ResultOf shows a result.
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

// ExitCell is how a job ended, for people.
func (v Result) ExitCell() string {
	switch {
	case v.State == StateUnknown:
		return "?"
	case v.Signal != "":
		return console.Harmless(v.Signal)
	}
	return strconv.Itoa(v.Exit)
}

// whyCell is what there is to say about a result but its code.
func (v Result) whyCell() string { return console.AndOutput(v.Why, v.Output) }

// endedAgo is the time since the job's end. It compares two hosts' clocks, and is
// for people only.
func (v Result) endedAgo() string {
	if v.Start.IsZero() {
		return console.Short(source.Unknown)
	}
	end := v.Start.Add(time.Duration(v.Duration * float64(time.Second)))
	return console.Short(max(time.Since(end), 0))
}

// Results sums up the results of a group. List has those that are not done;
// all of them, or those of the names that were asked for, where that is wanted.
type Results struct {
	Done    int      `json:"done"`
	Failed  int      `json:"failed"`
	Retry   int      `json:"retry"`
	Unknown int      `json:"unknown"`
	List    []Result `json:"list"`
}

// ReadResults reads the results of the names, and of chunks those of their jobs. What nobody
// will look at is counted and let go: a group may have very many.
func ReadResults(ctx context.Context, src source.Ledger, names []string, keepAll KeepDone) Results {
	names = inOrder(names)
	found := make([][]Result, len(names))
	var mu sync.Mutex
	sum := Results{List: []Result{}}
	InParallel(len(names), func(i int) {
		r, ok := readOne(ctx, src, names[i], keepAll)
		mu.Lock()
		defer mu.Unlock()
		if ok {
			found[i] = sum.add(r, keepAll)
		}
	})
	sum.List = append(sum.List, slices.Concat(found...)...)
	return sum
}

// KeepDone says whether to keep the results that are done, too.
type KeepDone bool

// inOrder are names of results, those of chunks in the order of the list.
func inOrder(names []string) []string {
	others, chunks := tellChunks(names)
	slices.SortFunc(others, Natural)
	for _, chunk := range chunks {
		others = append(others, lockgroup.ChunkName(chunk))
	}
	return others
}

// readOne reports false if there is no result. One that cannot be read is shown as what it
// is. Of a chunk no more is read than its summary, if that tells all that will be shown.
func readOne(ctx context.Context, src source.Ledger, name string, keepAll KeepDone) (multilock.Result, bool) {
	r, err := lockgroup.Summary(ctx, src, name)
	if err == nil && r.Chunk != nil && (bool(keepAll) || lockgroup.Telling(r)) {
		r, err = src.Result(ctx, name)
	}
	switch {
	case errors.Is(err, multilock.ErrNoResult):
		return multilock.Result{}, false
	case err != nil:
		return multilock.Result{Name: name, Foreign: err.Error()}, true
	}
	return r, true
}

// add counts what a result tells, and returns the views that are to be kept.
func (s *Results) add(r multilock.Result, keepAll KeepDone) (kept []Result) {
	if r.Chunk != nil && len(r.Chunk.Jobs) == 0 {
		s.Done += r.Chunk.Done
		return nil
	}
	lockgroup.EachJob(r, func(_ string, job multilock.Result) {
		v := ResultOf(job)
		s.count(v.State)
		if bool(keepAll) || v.State != ResultDone || v.Output != "" {
			kept = append(kept, v)
		}
	})
	return kept
}

// Add adds the results of jobs that were found.
func (s *Results) Add(found []multilock.Result) {
	for _, r := range found {
		s.List = append(s.List, s.add(r, true)...)
	}
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

// Total is how many there are.
func (s *Results) Total() int { return s.Done + s.Failed + s.Retry + s.Unknown }

// maxNamed is how many failures a summary names.
const maxNamed = 3

// Summary is one line: "12 done, 1 failed: NAME (exit 3 on node7, 5m ago)".
func (s *Results) Summary() string {
	text := fmt.Sprintf("%d done", s.Done) +
		Some(s.Failed, "failed") + Some(s.Retry, "failed and to be tried again") + Some(s.Unknown, "unknown")
	if named := s.named(); len(named) > 0 {
		text += ": " + strings.Join(named, ", ")
	}
	return text
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
		return fmt.Sprintf("%s (signal: %s on %s, %s ago)", console.Label(v.Name), console.Harmless(v.Signal), console.Harmless(v.Host), v.endedAgo())
	}
	return fmt.Sprintf("%s (exit %d on %s, %s ago)", console.Label(v.Name), v.Exit, console.Harmless(v.Host), v.endedAgo())
}

// Table lists the results.
func (s *Results) Table() (table Table) {
	table.Row("NAME", "RESULT", "EXIT", "ATTEMPT", "HOST", "USER", "ENDED", "TOOK", "COMMAND", "WHY")
	for _, v := range s.List {
		table.Row(console.Label(v.Name), v.State, v.ExitCell(), v.Attempt, Dash(v.Host), Dash(v.User),
			v.endedAgo()+" ago", console.Short(time.Duration(v.Duration*float64(time.Second))), Dash(Ellipsis(v.Command, 40)), v.whyCell())
	}
	return table
}
