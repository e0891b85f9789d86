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
	eventNone    hookEvent = "" // the run was refused, or found nothing to do
	eventSuccess hookEvent = "success"
	eventFailure hookEvent = "failure"
	eventLoss    hookEvent = "loss"
	eventOverrun hookEvent = "overrun"
)

// ending is how a run came out. Hooks, --ping, --json and the exit code are made from it.
type ending struct {
	event   hookEvent
	err     error       // has the exit code of the run
	job     *job.Result // of the last command, nil if none was started
	printed []byte      // the end of the job's output
	vars    []string    // the environment of hooks, without what the other fields say
}

// endingWithoutLock is that of a run that did nothing. That another process holds the lock, or
// ran the job before, is as it should be.
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

// ending is that of a run which had the lock.
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

// variables are the environment of the hook.
func (n ending) variables() []string {
	vars := append(n.vars, "MULTILOCK_EXIT="+strconv.Itoa(console.ExitCode(n.err)), "MULTILOCK_WHY="+n.why())
	if n.job != nil {
		vars = append(vars, "MULTILOCK_JOB_EXIT="+strconv.Itoa(n.job.Code), "MULTILOCK_DURATION="+seconds(n.job.Elapsed))
	}
	return vars
}

// why is one line about the ending.
func (n ending) why() string {
	text := show.Explain(n.err)
	var ended *console.JobError
	if text == "" && errors.As(n.err, &ended) {
		text = ended.Error()
	}
	return console.Line(text)
}

func seconds(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }

// report reports an ending to --ping and to hooks, which stop ends early; meanwhile runs while
// the ping is under way. It returns the run's error. The lock has been released before.
func (o *runOptions) report(e *Env, end ending, stop <-chan struct{}, meanwhile func()) error {
	pinged := o.pingEnd(e, end, stop)
	defer pinged()
	meanwhile()
	o.hookFor(e, end.event, end.variables(), end.printed).run(stop)
	return end.err
}
