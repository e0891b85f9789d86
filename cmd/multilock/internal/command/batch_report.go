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
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/lockgroup/batch"
	"github.com/multilock/go/multilock"
)

// batchView is the output of "batch --json".
type batchView struct {
	Base        string            `json:"base"`
	Group       string            `json:"group"`
	Total       int               `json:"total"`
	Done        int               `json:"done"`
	Failed      int               `json:"failed"`
	Unfinished  int               `json:"unfinished"` // without a final result
	EndedBefore int               `json:"ended_before"`
	RunHere     int               `json:"run_here"`
	LocksBroken int               `json:"locks_broken"`
	Failures    []batchFailedView `json:"failures"`
	// OutputLost are the jobs that are done, but with incomplete output.
	OutputLost []show.OutputLost `json:"output_lost"`
	Duration   float64           `json:"duration_seconds"`
	Warnings   []string          `json:"warnings,omitempty"`
	Exit       int               `json:"exit"`
	Error      string            `json:"error,omitempty"`

	err error
	// described are the failures that this process describes: those of its own jobs, so that each failure is
	// described on one host; or all, if it ran no jobs.
	described []batchFailedView
	place     place.Place
	output    string // the command or directory for the output of all failures
	retry     string // the command that retries the failed jobs
}

type batchFailedView struct {
	show.Failure
	Log string `json:"log,omitempty"` // where its output is: a path, or a command that prints it
	// Last is the last line of its standard error, or of all its output, if it ran here.
	Last string `json:"last_line,omitempty"`
}

// failedError is lockgroup.ErrNotDone with numbers.
type failedError struct{ failed, total int }

func (f *failedError) Error() string {
	return fmt.Sprintf("%d of %s failed", f.failed, plural(f.total, "job"))
}

// Is matches lockgroup.ErrNotDone.
func (f *failedError) Is(target error) bool { return target == lockgroup.ErrNotDone }

func viewOfBatch(o *batchOptions, src *place.Source, last *lastLines, r batch.Report, elapsed time.Duration, err error) batchView {
	v := batchView{
		Base: src.Place.Public(), Group: src.Place.Group, Total: r.Total, Done: r.Done, Failed: r.Failed, Unfinished: r.Total - r.Done - r.Failed, EndedBefore: r.Before,
		RunHere: r.Ran, LocksBroken: r.TakenOver, Failures: []batchFailedView{}, OutputLost: show.OutputLostOf(r.Incomplete), Duration: elapsed.Seconds(), Exit: console.ExitCode(err), Error: show.Explain(err), err: err,
	}
	if r.Trouble != nil {
		v.Warnings = []string{r.Trouble.Error()}
	}
	v.place = src.Place
	v.addFailures(r.Failures, src, o, last)
	return v
}

func (v *batchView) addFailures(failures []multilock.Result, src *place.Source, o *batchOptions, last *lastLines) {
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
		failed := batchFailedView{show.FailureOf(f), where(f.Name), last.of(f.Name)}
		v.Failures = append(v.Failures, failed)
		if v.RunHere == 0 || f.By == src.Self {
			v.described = append(v.described, failed)
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

// print reports how the batch ended. The returned error determines the exit code.
func (v batchView) print(e *Env, o *batchOptions) error {
	if o.JSON {
		return errors.Join(v.err, e.PrintJSON(v))
	}
	if v.refused() {
		return v.err
	}
	for _, line := range v.failureLines() {
		e.Say("%s", line)
	}
	o.output.tell(e, &o.common, v.OutputLost)
	if o.Verbose || v.err != nil {
		warnOf(e, len(v.Warnings), func(i int) string { return v.Warnings[i] })
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

// refused reports whether the list was rejected, so that no job ran.
func (v batchView) refused() bool {
	return errors.As(v.err, new(*batch.ManifestError)) || errors.As(v.err, new(*batch.DoneError)) || errors.As(v.err, new(*batch.BusyError))
}

// maxDescribed is the maximum number of failures that are described individually.
const maxDescribed = 3

// failureLines describes a few failures individually, and more of them grouped by how they ended.
func (v batchView) failureLines() (lines []string) {
	switch {
	case v.Failed == 0:
		return nil
	case len(v.described) <= maxDescribed:
		for _, f := range v.described {
			lines = append(lines, f.line())
		}
	default:
		lines = append(v.groups(), "their output: "+v.output)
	}
	for _, f := range v.described {
		if f.Last != "" {
			lines = append(lines, fmt.Sprintf("the last line of %s: %s", console.Label(f.Name), f.Last))
			break
		}
	}
	if more := v.Failed - len(v.described); more > 0 {
		lines = append(lines, fmt.Sprintf("%s failed on other hosts or before; see: %s", plural(more, "job"), v.place.Command("status", "--results")))
	}
	return append(lines, "to rerun the failed jobs: "+v.retry)
}

// groups lists the failures by how they ended, the most frequent end first.
func (v batchView) groups() (lines []string) {
	names := map[string][]string{}
	for _, f := range v.described {
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
	sum := fmt.Sprintf("%s: %d done", plural(v.Total, "job"), v.Done) +
		show.Some(v.Failed, "failed") + show.Some(len(v.OutputLost), "with incomplete output") + show.Some(v.Unfinished, "left") +
		show.Some(v.LocksBroken, "taken over") + show.Some(v.EndedBefore, "ended earlier") + show.Some(v.RunHere, "run here")
	return fmt.Sprintf("%s, in %s", sum, console.Short(time.Duration(v.Duration*float64(time.Second))))
}
