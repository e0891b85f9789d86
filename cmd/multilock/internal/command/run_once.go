package command

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
)

// recording is the options of "run" that have the job's result recorded.
type recording struct {
	once    bool
	every   everyTick
	retries console.Number
}

func (r *recording) flags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "once", Destination: &r.once, DisableDefaultText: true, Usage: "run the job once and for all, on whichever host: do nothing if its success is recorded", Category: "ONCE"},
		&cli.GenericFlag{Name: "every", Value: &r.every, Usage: "run the job once per `TICK` over all hosts, such as 1h, 1h@30m or 1d@07:30[Europe/Berlin]; see above", Category: "ONCE"},
		&cli.GenericFlag{Name: "retries", Value: &r.retries, Usage: "with --once or --every: try a job that failed up to `N` times more, over all hosts together (default: none)", Category: "ONCE"},
	}
}

const onceHelp = `With --once the result is recorded when the job ends, and a job whose success is
recorded is not run again: the exit code is 0, and a line says who ran it. One
that failed is tried again as often as --retries says; after that its exit code is
what every further run ends with, until "multilock clean --results NAME". A runner
that crashes before the result is recorded, or is told to end by a signal, has
not run the job as far as anybody can know: it is run again. A job that dies of
TERM, INT, HUP or QUIT, or exits with such a signal's code (128+n), is recorded a
second later, for who ends both may end the job first.

` + tickHelp

// recorded says whether the job's result is to be recorded.
func (r *recording) recorded() bool { return r.once || r.every.set }

// option is the one that has the result recorded.
func (r *recording) option() string {
	if r.every.set {
		return "--every"
	}
	return "--once"
}

func (r *recording) check(command string) error {
	switch {
	case r.once && r.every.set:
		return console.Usagef(command, "--once and --every contradict each other: choose once and for all, or once per tick")
	case r.retries.Given && !r.recorded():
		return console.Usagef(command, "--retries counts recorded attempts: it needs --once or --every")
	case r.retries.Value < 0:
		return console.Usagef(command, "--retries %d: must not be negative", r.retries.Value)
	}
	return nil
}

// plan is what was asked for, nil if the result is not to be recorded.
func (r *recording) plan() *lockgroup.Plan {
	if !r.recorded() {
		return nil
	}
	return &lockgroup.Plan{Retries: r.retries.Value, Every: r.every.value}
}

// settledBefore looks, without the lock, whether the job needs no run.
func (o *runOptions) settledBefore(ctx context.Context, e *Env, src *place.Source, plan *lockgroup.Plan) (settled bool, err error) {
	seen, err := lockgroup.Attempts{Source: src.Locks, Plan: plan}.Peek(ctx, o.Name)
	if err != nil || seen.Step == lockgroup.StepRun {
		return false, err
	}
	return true, o.skip(e, seen)
}

// skip tells why the job is not run.
func (o *runOptions) skip(e *Env, seen lockgroup.Outcome) error {
	last, err := *seen.Last, o.skipError(seen)
	if err == nil && !o.Quiet {
		e.Say("job %q already ran%s: %s", last.Name, forTick(last.Tick), show.Ending(last))
	}
	if o.JSON {
		printReport(e, runReport{Name: o.Name, Group: o.Group, Exit: console.ExitCode(err), Error: show.Explain(err), Result: &last})
	}
	return err
}

func (o *runOptions) skipError(seen lockgroup.Outcome) error {
	last := *seen.Last
	switch seen.Step {
	case lockgroup.StepFailed:
		return o.failedBefore(last)
	case lockgroup.StepUnclear:
		return fmt.Errorf("job %q counts as run, and how it ended is not known: %w: its result: %s; to let it run again: %s",
			last.Name, multilock.ErrUnsure, last.Foreign, o.Forgetting(last.Name))
	case lockgroup.StepRun, lockgroup.StepDone:
	}
	return nil
}

// failedBefore is the end of a job that failed for good in an earlier run. It ends with
// the job's own exit code.
func (o *runOptions) failedBefore(last multilock.Result) error {
	text := fmt.Sprintf("job %q has failed before, and is not run again: %s; to let it run again: %s", last.Name, show.Ending(last), o.Forgetting(last.Name))
	if last.Exit < 1 || last.Exit > 255 {
		return &console.CodedError{Code: console.ExitFailure, Text: text}
	}
	return &console.CodedError{Code: last.Exit, Text: text}
}
