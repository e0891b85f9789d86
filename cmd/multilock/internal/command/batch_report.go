package command

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/lockgroup/batch"
	"github.com/multilock/go/multilock"
)

// batchView is the output of "batch --json".
type batchView struct {
	Base      string            `json:"base"`
	Group     string            `json:"group"`
	Total     int               `json:"total"`
	Done      int               `json:"done"`
	Failed    int               `json:"failed"`
	Left      int               `json:"left"` // without a final result
	Before    int               `json:"before"`
	Ran       int               `json:"ran"`
	TakenOver int               `json:"taken_over"`
	Failures  []batchFailedView `json:"failures"`
	// Incomplete are done, but with incomplete output.
	Incomplete []show.Incomplete `json:"incomplete"`
	Elapsed    float64           `json:"elapsed_seconds"`
	Trouble    string            `json:"trouble,omitempty"`
	Exit       int               `json:"exit"`
	Error      string            `json:"error,omitempty"`

	err error
	// told are the failures that this process describes: those of its own jobs, so that each failure
	// of a list is described once over all hosts; or all, if it has run none.
	told   []batchFailedView
	place  place.Place
	output string // what to type, or where to look, for the output of all failures
}

type batchFailedView struct {
	show.Failure
	Log string `json:"log,omitempty"` // where its output is: a path, or a command that shows it
}

func viewOfBatch(o *batchOptions, src *place.Source, r batch.Report, elapsed time.Duration, err error) batchView {
	v := batchView{
		Base: src.Place.Public(), Group: src.Place.Group, Total: r.Total, Done: r.Done, Failed: r.Failed, Left: r.Total - r.Done - r.Failed, Before: r.Before,
		Ran: r.Ran, TakenOver: r.TakenOver, Failures: []batchFailedView{}, Incomplete: show.IncompleteOf(r.Incomplete), Elapsed: elapsed.Seconds(), Exit: console.ExitCode(err), Error: show.Explain(err), err: err,
	}
	if r.Trouble != nil {
		v.Trouble = r.Trouble.Error()
	}
	v.place = src.Place
	v.addFailures(r.Failures, src, o)
	return v
}

func (v *batchView) addFailures(failures []multilock.Result, src *place.Source, o *batchOptions) {
	if len(failures) == 0 {
		return
	}
	v.output = v.place.Command("logs", "--failed")
	if dir := cmp.Or(o.logs, o.results); dir != "" || !src.Place.IsFiles() {
		v.output = logsPath(src, dir)
	}
	where := func(name string) string { return "" }
	if found, stop, err := findOutput(src, cmp.Or(o.logs, o.results)); err == nil {
		defer stop()
		where = found
	}
	for _, f := range failures {
		failed := batchFailedView{show.FailureOf(f), where(f.Name)}
		v.Failures = append(v.Failures, failed)
		if v.Ran == 0 || f.By == src.Self {
			v.told = append(v.told, failed)
		}
	}
}

// line describes the failure and where the output is.
func (f batchFailedView) line() string {
	if f.Log == "" {
		return f.Sentence()
	}
	return f.Sentence() + "; its output: " + f.Log
}

// print reports how the batch ended. The error is for the exit code.
func (v batchView) print(e *Env, o *batchOptions) error {
	if o.JSON {
		return errors.Join(v.err, e.PrintJSON(v))
	}
	if errors.As(v.err, new(*batch.ManifestError)) {
		return v.err
	}
	for _, line := range v.failureLines() {
		e.Say("%s", line)
	}
	o.output.tell(e, &o.common, v.Incomplete)
	if v.Trouble != "" && (o.Verbose || v.err != nil) {
		e.Say("warning: %s", v.Trouble)
	}
	if o.Quiet {
		return v.err
	}
	if o.print || o.tag {
		e.Say("%s", v.summary())
		return v.err
	}
	return errors.Join(v.err, e.Print("%s\n", v.summary()))
}

// maxDescribed is how many failures are described one by one.
const maxDescribed = 3

// failureLines describes a few failures one by one, and more of them grouped by how they ended.
func (v batchView) failureLines() (lines []string) {
	switch {
	case v.Failed == 0:
		return nil
	case len(v.told) <= maxDescribed:
		for _, f := range v.told {
			lines = append(lines, f.line())
		}
	default:
		lines = append(v.groups(), "their output: "+v.output)
	}
	if more := v.Failed - len(v.told); more > 0 {
		lines = append(lines, fmt.Sprintf("%s failed on other hosts or before; see: %s", plural(more, "job"), v.place.Command("status", "--results")))
	}
	return append(lines, "to run what failed again, add --retry-failed to this command")
}

// groups names the failures that ended in the same way together, the most frequent end first.
func (v batchView) groups() (lines []string) {
	names := map[string][]string{}
	for _, f := range v.told {
		names[f.How()] = append(names[f.How()], f.Name)
	}
	ends := slices.Sorted(maps.Keys(names))
	slices.SortStableFunc(ends, func(a, b string) int { return len(names[b]) - len(names[a]) })
	for _, how := range ends[:min(len(ends), maxProblems)] {
		lines = append(lines, fmt.Sprintf("%s failed %s: %s", plural(len(names[how]), "job"), how, show.Listed(names[how])))
	}
	if more := len(ends) - maxProblems; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d other ends", more))
	}
	return lines
}

func (v batchView) summary() string {
	sum := fmt.Sprintf("%d jobs: %d done", v.Total, v.Done) +
		show.Some(v.Failed, "failed") + show.Some(len(v.Incomplete), "with incomplete output") + show.Some(v.Left, "left") +
		show.Some(v.TakenOver, "taken over from the dead") + show.Some(v.Before, "before") + show.Some(v.Ran, "run here")
	return fmt.Sprintf("%s, in %s", sum, console.Short(time.Duration(v.Elapsed*float64(time.Second))))
}
