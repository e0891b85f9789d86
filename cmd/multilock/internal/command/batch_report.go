package command

import (
	"cmp"
	"errors"
	"fmt"
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
	v.addFailures(r.Failures, src, o)
	return v
}

func (v *batchView) addFailures(failures []multilock.Result, src *place.Source, o *batchOptions) {
	if len(failures) == 0 {
		return
	}
	where := func(name string) string { return "" }
	if found, stop, err := findOutput(src, cmp.Or(o.logs, o.results)); err == nil {
		defer stop()
		where = found
	}
	for _, f := range failures {
		v.Failures = append(v.Failures, batchFailedView{show.FailureOf(f), where(f.Name)})
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
	for _, f := range v.Failures[:min(len(v.Failures), maxProblems)] {
		e.Say("%s", f.line())
	}
	if more := v.Failed - maxProblems; more > 0 {
		e.Say("and %d more have failed; see: multilock status --results", more)
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

func (v batchView) summary() string {
	sum := fmt.Sprintf("%d jobs: %d done", v.Total, v.Done) +
		show.Some(v.Failed, "failed") + show.Some(len(v.Incomplete), "with incomplete output") + show.Some(v.Left, "left") +
		show.Some(v.TakenOver, "taken over from the dead") + show.Some(v.Before, "before") + show.Some(v.Ran, "run here")
	return fmt.Sprintf("%s, in %s", sum, console.Short(time.Duration(v.Elapsed*float64(time.Second))))
}
