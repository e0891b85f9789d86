// Package command implements the commands: their options, actions and output. Each file is named after its
// command; shared code is in common.go.
package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/options"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// Env is the environment of all commands: the process's, and the kinds of lock sources.
type Env struct {
	*console.Env
	Kinds place.Kinds
	Line  *options.Line // the parsed command line

	asked  place.Asked // the options that select the place of the locks
	out    console.Output
	jsonFD console.Number
}

// common has the options that every command accepts, before or after its name.
type common struct {
	place.Place
	console.Output

	names []string // names of locks, from arguments or -n
}

// Flags returns a command's flags, bound to values. Common flags are bound to the same values whether they
// precede or follow the command.
func (e *Env) Flags(command string, values options.Values) []cli.Flag {
	all := options.Values{
		"dir": &e.asked.Dir, "group": &e.asked.Group, "name": &e.asked.Name, "source": &e.asked.Source, "trust": &e.asked.Trust,
		"legacy-peers": &e.asked.LegacyPeers, "require-shared": &e.asked.RequireShared,
		"json": &e.out.JSON, "quiet": &e.out.Quiet, "verbose": &e.out.Verbose,
	}
	maps.Copy(all, values)
	return options.Flags(e.Line, command, all)
}

// check rejects contradictory options and arguments.
func (e *Env) check(c *cli.Context) error {
	err := options.ReadEnv(c.Command.Flags, e.Getenv)
	if err == nil {
		err = e.Line.Check(c.Command.Name, c.Args().Slice())
	}
	if err != nil {
		return &console.UsageError{Command: c.Command.Name, Err: err}
	}
	return nil
}

// readCommon reads the common options.
func readCommon(c *cli.Context, e *Env) (common, error) {
	e.SpeakJSON = e.out.JSON
	if e.jsonFD.Given && e.out.JSON {
		if err := e.SpeakTo(e.jsonFD.Value); err != nil {
			return common{}, console.Usagef(c.Command.Name, "--json-fd: %w", err)
		}
	}
	if err := e.check(c); err != nil {
		return common{Output: e.out}, err
	}
	place, err := e.Kinds.Find(e.asked, e.Env)
	switch {
	case err != nil:
		err = &console.UsageError{Command: c.Command.Name, Err: err}
	case place.Exposed != "" && !e.out.Quiet:
		e.Say("warning: %s", place.Exposed)
	}
	names := c.Args().Slice()
	if place.NameGiven && !slices.Contains(names, place.Name) {
		names = append(names, place.Name)
	}
	return common{place, e.out, names}, err
}

// reading returns an action that reads the common options, and checks the others before it does anything.
func reading(e *Env, o *common, check, do func(*cli.Context) error) cli.ActionFunc {
	return func(c *cli.Context) (err error) {
		if *o, err = readCommon(c, e); err == nil && check != nil {
			err = check(c)
		}
		if err != nil {
			return err
		}
		return do(c)
	}
}

// action returns an action for which the source is opened, and closed afterwards.
func action(e *Env, o *common, check func(*cli.Context) error, do func(context.Context, *place.Source) error) cli.ActionFunc {
	return reading(e, o, check, func(c *cli.Context) error {
		src, err := e.Kinds.Open(c.Context, e.Env, o.Place)
		if err == nil {
			err = src.Close(do(c.Context, src))
		}
		return o.locate(err)
	})
}

// warnOneHost warns of locks that are invisible to other hosts.
func (o *common) warnOneHost(e *Env, src *place.Source) {
	if !o.Quiet && !o.JSON {
		src.WarnOneHost(e.Say)
	}
}

// locate adds the place of the lock to an error.
func (o *common) locate(err error) error {
	if err == nil {
		return nil
	}
	return &place.LocatedError{Place: o.Place, Quiet: o.Quiet, Err: err}
}

// readName takes the name of the command's lock, if any, from its arguments or from -n.
func (o *common) readName(c *cli.Context, instead string) error {
	switch {
	case len(o.names) > 1:
		return console.Usagef(c.Command.Name, "one lock at a time; %s", instead)
	case len(o.names) == 1:
		o.Name = o.names[0]
	}
	return source.CheckEnds("lock name", o.Name)
}

// errIncomplete means that all jobs are done, but that output of some was lost.
var errIncomplete = &console.CodedError{Code: console.ExitNotDone, Text: "the output of some jobs is not complete"}

// outputPolicy is the value of --output: whether a job with lost output counts as a success.
type outputPolicy string

func (o outputPolicy) isBestEffort() bool { return o == "best-effort" }

// join adds an error for lost output of jobs to that of a batch or a barrier.
func (o outputPolicy) join(err error, incomplete []multilock.Result) error {
	if o.isBestEffort() || len(incomplete) == 0 {
		return err
	}
	return errors.Join(err, errIncomplete)
}

// tell lists the jobs with incomplete output.
func (o outputPolicy) tell(e *Env, place *common, incomplete []show.OutputLost) {
	warning := ""
	if o.isBestEffort() {
		warning = "warning: "
	}
	for _, v := range show.AtMost(e.Env, incomplete) {
		e.Say("%sjob %q is done, but its output is not complete: %s; to run it again: %s", warning, v.Name, v.Because, place.Forgetting(v.Name))
	}
}

// exitCodes are the codes of --retry-on.
type exitCodes []int

// Set reads the codes.
func (c *exitCodes) Set(text string) error {
	*c = nil
	for code := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(code))
		if err != nil || n < 1 || n > 255 {
			return fmt.Errorf("%q is no exit code of a failure: write numbers from 1 to 255 with commas between them, such as 75,137", code)
		}
		*c = append(*c, n)
	}
	return nil
}
