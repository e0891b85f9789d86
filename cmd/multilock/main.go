// A container's processor limit is read only once, instead of every second, so that a waiting process uses no
// processor time.
//
//go:debug updatemaxprocs=0

// Command multilock locks and runs jobs on clusters whose hosts share only a filesystem.
package main

import (
	"context"
	"errors"
	"os"
	"syscall"

	"github.com/multilock/go/cmd/multilock/internal/command"
	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/cmd/multilock/job"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == job.GuardArg {
		os.Exit(job.Guard(os.Stdin))
	}
	environ := place.Conceal()
	if code, yes := asInit(environ); yes {
		os.Exit(code)
	}
	e := &command.Env{Env: console.NewEnv(environ), Kinds: place.Known()}
	if len(os.Args) > 1 && os.Args[1] == completeCommand {
		complete(context.Background(), e, os.Args[2:])
		return
	}
	outcome := run(context.Background(), e, os.Args)
	outcome.leave()
	os.Exit(outcome.code)
}

// outcome describes how the program ends.
type outcome struct {
	code int
	job  job.Result // of a job that ran; otherwise it has at most the signal that ended this process
}

// leave ends the process by SIGINT if the job ended so, or if this process was interrupted without a job.
// Then a shell loop around it ends, too, as it would for the job alone.
func (o outcome) leave() {
	if o.code == console.ExitSignal+int(syscall.SIGINT) {
		o.job.Reraise()
	}
}

// conclude reports an error to the user, unless it was already reported, and returns how the program ends.
func conclude(e *command.Env, err error) outcome {
	o := outcome{code: console.ExitCode(err)}
	refused := o.code == console.ExitHeld || errors.As(err, new(*console.RefusedError))
	var jobEnd *console.JobError
	if errors.As(err, &jobEnd) {
		o.job = jobEnd.Result
	}
	var stopped *console.SignalError
	if o.job.Signal == 0 && errors.As(err, &stopped) {
		o.job.Signal = stopped.Signal
	}
	var located *place.LocatedError
	if refused && errors.As(err, &located) && located.Quiet {
		return o
	}
	text := show.Explain(err)
	switch {
	case text == "":
	case e.SpeakJSON:
		e.SayObject(show.Refusal(err, text, o.code))
	default:
		e.Say("%s", text)
	}
	return o
}
