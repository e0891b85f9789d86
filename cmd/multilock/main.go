// The limit of a container's processors is looked up once, and not every second: a
// waiter is to leave the processor alone.
//
//go:debug updatemaxprocs=0

// Command multilock locks and runs jobs for clusters whose hosts share nothing
// but a filesystem.
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

// outcome is how the program is to end.
type outcome struct {
	code int
	job  job.Result // of a job that ran; else at most the signal that ended us
}

// leave dies by SIGINT if the job did, or if we were interrupted without one, so
// that a shell's loop around us ends as it would without us.
func (o outcome) leave() {
	if o.code == console.ExitSignal+int(syscall.SIGINT) {
		o.job.Reraise()
	}
}

// conclude tells the user what went wrong, if that is ours to tell, and how to end.
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
