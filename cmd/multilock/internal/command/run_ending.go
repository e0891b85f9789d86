package command

import (
	"errors"
	"strconv"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/cmd/multilock/job"
	"github.com/multilock/go/multilock"
)

// hookEvent selects which hook runs.
type hookEvent string

const (
	eventNone    hookEvent = "" // the lock was not acquired, or there was nothing to do
	eventSuccess hookEvent = "success"
	eventFailure hookEvent = "failure"
	eventLoss    hookEvent = "loss"
	eventOverrun hookEvent = "overrun"
)

// ending is the outcome of a run, for hooks, --ping, --json and the exit code.
type ending struct {
	event   hookEvent
	err     error       // determines the exit code
	job     *job.Result // the last command, nil if none was started
	printed []byte      // the end of the job's output
	vars    []string    // the hooks' environment, except for the other fields
}

// endingWithoutLock is the ending of a run that did nothing. It is no failure that another process
// holds the lock, or has already run the job.
func endingWithoutLock(o *runOptions, err error) ending {
	event := eventNone
	switch code := console.ExitCode(err); {
	case code == console.ExitStarved:
		event = eventFailure
	case errors.Is(err, multilock.ErrHeld):
	case code == console.ExitUnsure, code == console.ExitFailure:
		event = eventFailure
	}
	vars := []string{"MULTILOCK_NAME=" + o.Name, "MULTILOCK_GROUP=" + o.Group, "MULTILOCK_COMMAND=" + o.shown}
	return ending{event: event, err: err, vars: vars}
}

// ending is the ending of a run that had the lock.
func (r *jobRun) ending(err error) ending {
	end := endingWithoutLock(r.opt, err)
	end.job, end.printed, end.vars = r.result, r.printed.last(), r.hookVariables()
	switch {
	case r.skipped:
		end.event = eventNone
	case !r.begun:
	case err == nil:
		end.event = eventSuccess
	case errors.Is(err, multilock.ErrLost):
		end.event = eventLoss
	default:
		end.event = eventFailure
	}
	return end
}

// variables is the environment of the hook.
func (n ending) variables() []string {
	vars := append(n.vars, "MULTILOCK_EXIT="+strconv.Itoa(console.ExitCode(n.err)), "MULTILOCK_WHY="+n.why())
	if n.job != nil {
		vars = append(vars, "MULTILOCK_JOB_EXIT="+strconv.Itoa(n.job.Code), "MULTILOCK_DURATION="+seconds(n.job.Elapsed))
	}
	return vars
}

// why describes the ending in one line.
func (n ending) why() string {
	text := show.Explain(n.err)
	var ended *console.JobError
	if text == "" && errors.As(n.err, &ended) {
		text = ended.Error()
	}
	return console.Line(text)
}

func seconds(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }

// report runs --ping and the hooks after the release, and meanwhile while the ping is under way.
// Closing stop ends them early. It returns the run's error.
func (o *runOptions) report(e *Env, end ending, stop <-chan struct{}, meanwhile func()) error {
	pinged := o.pingEnd(e, end, stop)
	defer pinged()
	meanwhile()
	o.hookFor(e, end.event, end.variables(), end.printed).run(stop)
	return end.err
}
