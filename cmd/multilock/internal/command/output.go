package command

import (
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/multilock"
)

// errIncomplete says that all jobs are done, and that what some have printed is lost.
var errIncomplete = &console.CodedError{Code: console.ExitNotDone, Text: "the output of some jobs is not complete"}

// outputPolicy is the value of --output: whether a job whose output was lost is one
// with which all is well.
type outputPolicy struct{ bestEffort bool }

func (o *outputPolicy) String() string { return "" }

func (o *outputPolicy) Set(text string) error {
	if text != "required" && text != "best-effort" {
		return errors.New("choose required or best-effort")
	}
	o.bestEffort = text == "best-effort"
	return nil
}

func (o *outputPolicy) flag() cli.Flag {
	return &cli.GenericFlag{Name: "output", Value: o, Usage: "`WHAT` to think of a job that succeeded and whose output could not be kept (a full disk): required (exit code 1), best-effort (a warning)", DefaultText: "required", Category: "OUTPUT"}
}

// join adds to the error of a batch or a barrier what is to be thought of its jobs' output.
func (o *outputPolicy) join(err error, incomplete []multilock.Result) error {
	if o.bestEffort || len(incomplete) == 0 {
		return err
	}
	return errors.Join(err, errIncomplete)
}

// tell names the jobs whose output is not complete.
func (o *outputPolicy) tell(e *Env, place *common, incomplete []show.Incomplete) {
	warning := ""
	if o.bestEffort {
		warning = "warning: "
	}
	for _, v := range show.AtMost(e.Env, incomplete) {
		e.Say("%sjob %q is done, but its output is not complete: %s; to let it run again: %s", warning, v.Name, v.Output, place.Forgetting(v.Name))
	}
}
