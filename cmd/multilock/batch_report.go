package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/lockgroup/batch"
)

// batchView is what "batch --json" prints.
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
	// Incomplete are done, and their output is not complete.
	Incomplete []incompleteView `json:"incomplete"`
	Elapsed    float64          `json:"elapsed_seconds"`
	Trouble    string           `json:"trouble,omitempty"`
	Exit       int              `json:"exit"`
	Error      string           `json:"error,omitempty"`

	err error
}

type batchFailedView struct {
	failedView
	Log string `json:"log,omitempty"` // if it has printed anything
}

func viewOfBatch(o *batchOptions, src *openedSource, r batch.Report, elapsed time.Duration, err error) batchView {
	v := batchView{
		Base: src.opt.place(), Group: src.opt.group, Total: r.Total, Done: r.Done, Failed: r.Failed, Left: r.Total - r.Done - r.Failed, Before: r.Before,
		Ran: r.Ran, TakenOver: r.TakenOver, Failures: []batchFailedView{}, Incomplete: viewsOfIncomplete(r.Incomplete), Elapsed: elapsed.Seconds(), Exit: console.ExitCode(err), Error: explain(err), err: err,
	}
	if r.Trouble != nil {
		v.Trouble = r.Trouble.Error()
	}
	for _, f := range r.Failures {
		v.Failures = append(v.Failures, batchFailedView{viewOfFailed(f), present(logPath(src, o.logs, f.Name))})
	}
	return v
}

// present is a path under which there is something, or "".
func present(path string) string {
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// sentence also says where to look.
func (f batchFailedView) sentence() string {
	if f.Log == "" {
		return f.failedView.sentence()
	}
	return f.failedView.sentence() + "; its output: " + f.Log
}

// print tells how the batch ended; the error is for the exit code.
func (v batchView) print(e *env, o *batchOptions) error {
	if o.json {
		return errors.Join(v.err, e.PrintJSON(v))
	}
	if errors.As(v.err, new(*batch.ManifestError)) {
		return v.err
	}
	for _, f := range v.Failures[:min(len(v.Failures), maxProblems)] {
		e.Say("%s", f.sentence())
	}
	if more := v.Failed - maxProblems; more > 0 {
		e.Say("and %d more have failed; see: multilock status --results", more)
	}
	o.output.tell(e, &o.common, v.Incomplete)
	if v.Trouble != "" && (o.verbose || v.err != nil) {
		e.Say("warning: %s", v.Trouble)
	}
	if o.quiet {
		return v.err
	}
	return errors.Join(v.err, e.Print("%s\n", v.summary()))
}

// summary is one line on how things stand.
func (v batchView) summary() string {
	parts := []string{fmt.Sprintf("%d jobs: %d done", v.Total, v.Done)}
	for _, one := range []struct {
		count int
		words string
	}{{v.Failed, "failed"}, {len(v.Incomplete), "with incomplete output"}, {v.Left, "left"}, {v.TakenOver, "taken over from the dead"}, {v.Before, "before"}, {v.Ran, "run here"}} {
		if one.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", one.count, one.words))
		}
	}
	return fmt.Sprintf("%s, in %s", strings.Join(parts, ", "), console.Short(time.Duration(v.Elapsed*float64(time.Second))))
}

// startBatchProgress shows how far all hosts have come: a bar on a terminal; in a
// log, a line after a few seconds and then ever more rarely.
func startBatchProgress(ctx context.Context, e *env, o common, b *batch.Batch) stopper {
	start := time.Now()
	if o.quiet || !console.IsTerminal(e.Stderr) {
		return startNotice(ctx, e, o, func(context.Context, time.Duration) string {
			return batchText(b.Progress(), time.Since(start))
		})
	}
	return startMeter(e, func() amount { return batchAmount(b.Progress()) })
}

func batchAmount(p batch.Progress) amount {
	return amount{done: p.Done + p.Failed, total: p.Total, before: p.Before, what: batchTrouble(p)}
}

// batchText is the line of a log, with the rate and the time that is left.
func batchText(p batch.Progress, elapsed time.Duration) string {
	a := batchAmount(p)
	return fmt.Sprintf("%d of %d ended, %s%s", a.done, a.total, a.what, a.pace(elapsed))
}

// batchTrouble is what there is to tell beside the numbers of a bar.
func batchTrouble(p batch.Progress) string {
	parts := []string{fmt.Sprintf("%d running here", p.Running)}
	for _, one := range []struct {
		count int
		words string
	}{{p.Elsewhere, "held elsewhere"}, {p.Failed, "failed"}, {p.TakenOver, "taken over"}, {p.Before, "done before"}} {
		if one.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", one.count, one.words))
		}
	}
	return strings.Join(parts, ", ")
}
