package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/cmd/multilock/job"
	"github.com/multilock/go/multilock"
)

// hooks is the options of "run" that have a command run when something has happened.
type hooks struct {
	failure, success, loss, onOverrun string

	overrunAfter console.Duration
	hookTimeout  console.Duration
}

const hooksHelp = `--on-success, --on-failure, --on-loss and --on-overrun have a COMMAND run by /bin/sh
when this run has ended well, has failed, or has lost its lock (without --on-loss that
is a failure), or when the job takes too long: longer than --overrun, or, with --every,
until its next tick begins. The first three run when the lock has been released, the
last one beside the job, once; none ever keeps the lock from anybody. A run that was
refused, or found nothing to do, has no hook; one that could not learn the lock's
state, or was refused as often as --fail-after says, has failed.

A hook is ended with all its processes after --hook-timeout, or when multilock is told
to end; how it ends is told if it fails, and changes no exit code. What it prints goes
to the standard error. It finds the end of the job's output on its standard input
(with --quiet-success or --log; empty without), and in its environment the MULTILOCK_*
variables of the job (not MULTILOCK_TOKEN and MULTILOCK_JOB_KEY), and

   MULTILOCK_EVENT      success, failure, loss or overrun
   MULTILOCK_EXIT       the exit code of this run; not for overrun
   MULTILOCK_JOB_EXIT   that of the job, if it was started and has ended
   MULTILOCK_DURATION   the seconds that the job took, or has taken
   MULTILOCK_WHY        what there is to say about it, in words
   MULTILOCK_HOLDER     host, process and user of this run
   MULTILOCK_COMMAND    the job's command, as others see it
   MULTILOCK_LOG        the file of --log

   multilock run -n nightly --quiet-success --on-failure \
      'mail -s "$MULTILOCK_NAME: $MULTILOCK_WHY" ops@example.org' -- nightly.sh`

func (h *hooks) flags() []cli.Flag {
	const category = "HOOKS"
	return []cli.Flag{
		&cli.StringFlag{Name: "on-failure", Destination: &h.failure, Usage: "run this `COMMAND` when the run has failed", Category: category},
		&cli.StringFlag{Name: "on-success", Destination: &h.success, Usage: "run this `COMMAND` when the run has ended well", Category: category},
		&cli.StringFlag{Name: "on-loss", Destination: &h.loss, Usage: "run this `COMMAND` when the run has lost its lock, in place of that of --on-failure", Category: category},
		&cli.StringFlag{Name: "on-overrun", Destination: &h.onOverrun, Usage: "run this `COMMAND` when the job takes too long", Category: category},
		&cli.GenericFlag{Name: "overrun", Value: &h.overrunAfter, Usage: "say so when the job has run for this `DURATION`, and run --on-overrun; it is not ended (default: for --on-overrun with --every, when its next tick begins)", Category: category},
		&cli.GenericFlag{Name: "hook-timeout", Value: &h.hookTimeout, Usage: "end each such command after this `DURATION` (default: 1m)", Category: category},
	}
}

const (
	defaultHookTimeout = time.Minute
	// hookGrace is the time between TERM and KILL of a hook.
	hookGrace = 2 * time.Second
)

func (h *hooks) check(command string, every bool) error {
	if !h.hookTimeout.Given {
		h.hookTimeout.Value = defaultHookTimeout
	}
	switch {
	case h.hookTimeout.Value == 0:
		return console.Usagef(command, "--hook-timeout 0: a hook needs some time; the default is %s", console.Short(defaultHookTimeout))
	case h.hookTimeout.Given && h.failure+h.success+h.loss+h.onOverrun == "":
		return console.Usagef(command, "--hook-timeout is for hooks: add --on-failure COMMAND or its like")
	case h.overrunAfter.Given && h.overrunAfter.Value == 0:
		return console.Usagef(command, "--overrun 0: leave the option out for no limit")
	case h.onOverrun != "" && !h.overrunAfter.Given && !every:
		return console.Usagef(command, "--on-overrun needs to know what is too long: add --overrun DURATION")
	}
	return nil
}

// happening is what there is to tell of a run that has ended, or goes on.
type happening string

const (
	nothing   happening = "" // that is anybody's business
	succeeded happening = "success"
	failed    happening = "failure"
	lost      happening = "loss"
	overran   happening = "overrun"
)

// command is the hook for something, and the option that has it; "" if there is none.
func (h *hooks) command(what happening) (command, option string) {
	switch {
	case what == succeeded:
		return h.success, "--on-success"
	case what == overran:
		return h.onOverrun, "--on-overrun"
	case what == lost && h.loss != "":
		return h.loss, "--on-loss"
	case what == failed, what == lost:
		return h.failure, "--on-failure"
	}
	return "", ""
}

// happened is what a run has come to under its lock.
func (r *jobRun) happened(err error) happening {
	switch {
	case !r.begun:
		return unrun(err)
	case err == nil:
		return succeeded
	case errors.Is(err, multilock.ErrLost):
		return lost
	}
	return failed
}

// unrun is what a run has come to that did nothing. That somebody else has the lock, or was
// there before, is as it should be.
func unrun(err error) happening {
	switch code := console.ExitCode(err); {
	case code == console.ExitStarved:
		return failed
	case errors.Is(err, multilock.ErrHeld):
		return nothing
	case code == console.ExitUnsure, code == console.ExitFailure:
		return failed
	}
	return nothing
}

// tellUnrun runs the hook for a run that never had its lock, and returns its error.
func (o *runOptions) tellUnrun(e *Env, sigs *console.Signals, err error) error {
	what, stop := unrun(err), sigs.Next()
	pinged := o.pingEnd(e, what, err, nil, stop)
	vars := append(endVariables(err), "MULTILOCK_NAME="+o.Name, "MULTILOCK_GROUP="+o.Group, "MULTILOCK_COMMAND="+o.shown)
	o.hookFor(e, what, vars, nil).run(stop)
	pinged()
	return err
}

// hook is a command that is to be run.
type hook struct {
	env             *Env
	command, option string
	vars            []string
	input           []byte
	limit           time.Duration
}

// hookFor is what is to be run for something, nil if that is nothing.
func (o *runOptions) hookFor(e *Env, what happening, vars []string, input []byte) *hook {
	command, option := o.hooks.command(what)
	if command == "" {
		return nil
	}
	vars = append(place.JobEnviron(e.Environ()), vars...)
	return &hook{e, command, option, append(vars, "MULTILOCK_EVENT="+string(what)), input, o.hookTimeout.Value}
}

// run runs a hook to its end, or until stop is closed. That it fails is told.
func (h *hook) run(stop <-chan struct{}) {
	if h == nil {
		return
	}
	if err := h.try(stop); err != nil {
		h.env.Say("%s: %v", h.option, err)
	}
}

func (h *hook) try(stop <-chan struct{}) error {
	input, err := fed(h.input)
	if err != nil {
		return err
	}
	j, err := job.Start(job.Spec{Args: job.Shell(h.command), Env: h.vars, Stdin: input, Stdout: h.env.Stderr, Stderr: h.env.Stderr})
	if input != nil {
		_ = input.Close() // the hook has its own
	}
	if err != nil {
		return err
	}
	timer := time.NewTimer(h.limit)
	defer timer.Stop()
	select {
	case <-j.Done():
		return hookEnd(j.Result())
	case <-timer.C:
		err = fmt.Errorf("its command was ended after %s, the limit of --hook-timeout", console.Short(h.limit))
	case <-stop:
		err = errors.New("its command was ended, for we are to end")
	}
	return errors.Join(err, j.Stop(context.Background(), hookGrace))
}

func hookEnd(r job.Result) error {
	switch {
	case r.Signal != 0:
		return fmt.Errorf("its command was ended by signal %d (%v)", int(r.Signal), r.Signal)
	case r.Code != 0:
		return fmt.Errorf("its command ended with code %d", r.Code)
	}
	return nil
}

// fed is the reading end of a pipe with a text in it, nil if there is none.
func fed(text []byte) (*os.File, error) {
	if len(text) == 0 {
		return nil, nil
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	go func() {
		_, _ = writer.Write(text) // whoever does not read it has no use for it
		_ = writer.Close()
	}()
	return reader, nil
}

// hookVariables is what a hook learns of a run that has a lock. The one that marks the
// job's processes is not among them: a hook is none.
func (r *jobRun) hookVariables() []string {
	by := r.lock.Record().Holder
	by.Command = ""
	vars := append(r.ownVariables(), "MULTILOCK_HOLDER="+by.String(), "MULTILOCK_COMMAND="+r.opt.shown)
	if r.printed.path != "" {
		vars = append(vars, "MULTILOCK_LOG="+r.printed.path)
	}
	return vars
}

// endVariables are for a run that has ended.
func (r *jobRun) endVariables(err error) []string {
	vars := endVariables(err)
	if r.result != nil {
		vars = append(vars, "MULTILOCK_JOB_EXIT="+strconv.Itoa(r.result.Code), "MULTILOCK_DURATION="+seconds(r.result.Elapsed))
	}
	return vars
}

func endVariables(err error) []string {
	return []string{"MULTILOCK_EXIT=" + strconv.Itoa(console.ExitCode(err)), "MULTILOCK_WHY=" + whyWords(err)}
}

// whyWords are one line about an end.
func whyWords(err error) string {
	text := show.Explain(err)
	var ended *console.JobError
	if text == "" && errors.As(err, &ended) {
		text = ended.Error()
	}
	return console.Line(text)
}

func seconds(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }

// after is for when the run is over, and its lock released.
func (r *jobRun) after(err error) {
	what, last := nothing, r.printed.last()
	if !r.skipped {
		what = r.happened(err)
	}
	pinged := r.opt.pingEnd(r.env, what, err, last, r.next)
	defer pinged()
	r.printed.end(r.next, r.env, err)
	r.overrun.end()
	vars := append(r.hookVariables(), r.endVariables(err)...)
	r.opt.hookFor(r.env, what, vars, last).run(r.next)
}
