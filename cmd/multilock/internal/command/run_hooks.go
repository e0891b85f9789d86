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
		err = fmt.Errorf("its command was terminated after %s, the limit of --hook-timeout", console.Short(h.timeout.Value))
	case <-stop:
		err = errors.New("its command was terminated, because this process is to end")
	}
	return errors.Join(err, j.Stop(context.Background(), hookGrace))
}

func hookEnd(r job.Result) error {
	switch {
	case r.Signal != 0:
		return fmt.Errorf("its command was terminated by signal %d (%v)", int(r.Signal), r.Signal)
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

// hookVariables describe a run to its hooks. They lack the variable that marks the job's processes, because a
// hook is not one of them.
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
	if f.logCommand != "" {
		vars = append(vars, "MULTILOCK_LOG_COMMAND="+f.logCommand)
	}
	return vars
}

// hookVariables also describe how the run ended.
func (end ending) hookVariables() []string {
	vars := append(end.facts.hookVariables(), "MULTILOCK_EXIT="+strconv.Itoa(console.ExitCode(end.err)), "MULTILOCK_WHY="+end.explain())
	if end.result != nil {
		vars = append(vars, "MULTILOCK_JOB_EXIT="+strconv.Itoa(end.result.Code), "MULTILOCK_DURATION="+seconds(end.result.Elapsed))
	}
	return vars
}
