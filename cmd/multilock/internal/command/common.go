// Package command has the commands: what options each has, what it does, and what it prints. A
// file has the name of its command; what several of them use is in common.go.
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

// Env is what all commands get: what is outside, and the kinds of lock sources there are.
type Env struct {
	*console.Env
	Kinds place.Kinds
	Line  *options.Line // what the command line says

	asked  place.Asked // of it: where the locks live
	out    console.Output
	jsonFD console.Number
}

// common holds the options that every command has, before or after its name.
type common struct {
	place.Place
	console.Output

	names []string // of the locks that a command is to deal with, as arguments or with -n
}

// Flags are the options of a command, and where their values go. Those that every command has go to
// the same place whether they stand before the command or after it.
func (e *Env) Flags(command string, values options.Values) []cli.Flag {
	all := options.Values{
		"dir": &e.asked.Dir, "group": &e.asked.Group, "name": &e.asked.Name, "source": &e.asked.Source, "trust": &e.asked.Trust,
		"legacy-peers": &e.asked.LegacyPeers, "require-shared": &e.asked.RequireShared,
		"json": &e.out.JSON, "quiet": &e.out.Quiet, "verbose": &e.out.Verbose,
	}
	maps.Copy(all, values)
	return options.Flags(e.Line, command, all)
}

// check finds what contradicts itself on the command line.
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

// readCommon reads the options that every command has.
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

// reading is a command: the options that every command has are read, and the others are checked
// before anything is touched.
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

// action is a command for which the source is opened, and closed again.
func action(e *Env, o *common, check func(*cli.Context) error, do func(context.Context, *place.Source) error) cli.ActionFunc {
	return reading(e, o, check, func(c *cli.Context) error {
		src, err := e.Kinds.Open(c.Context, e.Env, o.Place)
		if err == nil {
			err = src.Close(do(c.Context, src))
		}
		return o.locate(err)
	})
}

// tellOneHost warns of locks that other hosts do not see.
func (o *common) tellOneHost(e *Env, src *place.Source) {
	if !o.Quiet && !o.JSON {
		src.TellOneHost(e.Say)
	}
}

// locate adds to an error where its lock is.
func (o *common) locate(err error) error {
	if err == nil {
		return nil
	}
	return &place.LocatedError{Place: o.Place, Quiet: o.Quiet, Err: err}
}

// readName takes the one lock's name that a command is to deal with, if there is any, from its
// arguments or from -n.
func (o *common) readName(c *cli.Context, instead string) error {
	switch {
	case len(o.names) > 1:
		return console.Usagef(c.Command.Name, "one lock at a time; %s", instead)
	case len(o.names) == 1:
		o.Name = o.names[0]
	}
	return source.CheckEnds("lock name", o.Name)
}

// errIncomplete says that all jobs are done, and that what some have printed is lost.
var errIncomplete = &console.CodedError{Code: console.ExitNotDone, Text: "the output of some jobs is not complete"}

// outputPolicy is the value of --output: whether a job whose output was lost is one
// with which all is well.
type outputPolicy string

func (o outputPolicy) isBestEffort() bool { return o == "best-effort" }

// join adds to the error of a batch or a barrier what is to be thought of its jobs' output.
func (o outputPolicy) join(err error, incomplete []multilock.Result) error {
	if o.isBestEffort() || len(incomplete) == 0 {
		return err
	}
	return errors.Join(err, errIncomplete)
}

// tell names the jobs whose output is not complete.
func (o outputPolicy) tell(e *Env, place *common, incomplete []show.Incomplete) {
	warning := ""
	if o.isBestEffort() {
		warning = "warning: "
	}
	for _, v := range show.AtMost(e.Env, incomplete) {
		e.Say("%sjob %q is done, but its output is not complete: %s; to let it run again: %s", warning, v.Name, v.Output, place.Forgetting(v.Name))
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
