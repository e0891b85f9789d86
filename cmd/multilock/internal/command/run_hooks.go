package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/job"
)

// hooks are the options of "run" that run a command on an event.
type hooks struct {
	failure, success, loss, onOverrun string
	overrunAfter, timeout             console.Duration
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
variables of the job (not MULTILOCK_TOKEN and MULTILOCK_JOB_KEY) and those about the
event, which "multilock help environment" lists:

   multilock run -n nightly --quiet-success --on-failure \
      'mail -s "$MULTILOCK_NAME: $MULTILOCK_WHY" ops@example.org' -- nightly.sh`

// hookGrace is the time between TERM and KILL of a hook.
const hookGrace = 2 * time.Second

// command returns the hook for an event and its option, "" if none was given.
func (h *hooks) command(event hookEvent) (command, option string) {
	switch {
	case event == eventSuccess:
		return h.success, "--on-success"
	case event == eventOverrun:
		return h.onOverrun, "--on-overrun"
	case event == eventLoss && h.loss != "":
		return h.loss, "--on-loss"
	case event == eventFailure, event == eventLoss:
		return h.failure, "--on-failure"
	}
	return "", ""
}

// hookRunner runs the hook for an event, if there is one, until it ends or stop is closed. A failed
// hook is reported, but changes no exit code.
type hookRunner func(event hookEvent, vars []string, input []byte, stop <-chan struct{})

func (h *hooks) runner(e *console.Env) hookRunner {
	return func(event hookEvent, vars []string, input []byte, stop <-chan struct{}) {
		command, option := h.command(event)
		if command == "" {
			return
		}
		vars = slices.Concat(place.JobEnviron(e.Environ()), vars, []string{"MULTILOCK_EVENT=" + string(event)})
		if err := h.run(job.Spec{Args: job.Shell(command), Env: vars, Stdout: e.Stderr, Stderr: e.Stderr}, input, stop); err != nil {
			e.Say("%s: %v", option, err)
		}
	}
}

func (h *hooks) run(hook job.Spec, input []byte, stop <-chan struct{}) (err error) {
	if hook.Stdin, err = pipeWith(input); err != nil {
		return err
	}
	j, err := job.Start(hook)
	if hook.Stdin != nil {
		_ = hook.Stdin.Close() // the hook has its own copy
	}
	if err != nil {
		return err
	}
	timer := time.NewTimer(h.timeout.Value)
	defer timer.Stop()
	select {
	case <-j.Done():
		return hookEnd(j.Result())
	case <-timer.C:
		err = fmt.Errorf("its command was ended after %s, the limit of --hook-timeout", console.Short(h.timeout.Value))
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

// pipeWith returns the read end of a pipe that contains the text, nil for an empty text.
func pipeWith(text []byte) (*os.File, error) {
	if len(text) == 0 {
		return nil, nil
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	go func() {
		_, _ = writer.Write(text) // a hook need not read it
		_ = writer.Close()
	}()
	return reader, nil
}

// hookVariables describe a run to its hooks. The job's key is missing, because a hook is not a
// process of the job.
func (f facts) hookVariables() []string {
	vars := append(f.jobVariables(), "MULTILOCK_COMMAND="+f.job.shown)
	if f.lock != nil {
		by := f.lock.Record().Holder
		by.Command = ""
		vars = append(vars, "MULTILOCK_HOLDER="+by.String())
	}
	if f.logPath != "" {
		vars = append(vars, "MULTILOCK_LOG="+f.logPath)
	}
	return vars
}

// hookVariables also tell how the run ended.
func (end ending) hookVariables() []string {
	vars := append(end.facts.hookVariables(), "MULTILOCK_EXIT="+strconv.Itoa(console.ExitCode(end.err)), "MULTILOCK_WHY="+end.explain())
	if end.result != nil {
		vars = append(vars, "MULTILOCK_JOB_EXIT="+strconv.Itoa(end.result.Code), "MULTILOCK_DURATION="+seconds(end.result.Elapsed))
	}
	return vars
}
