// Package command has the commands: what options each has, what it does, and what it prints. A
// file has the name of its command; what several of them use is in common.go, holding.go and
// output.go.
package command

import (
	"context"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
)

// Env is what all commands get: what is outside, and the kinds of lock sources there are.
type Env struct {
	*console.Env
	Kinds place.Kinds
}

// common holds the options that every command has, before or after its name.
type common struct {
	place.Place
	console.Output
}

// Flags are defined twice, for the program and for each command. The
// environment is not left to the library: an option on the command line wins
// over it wherever it stands, and an empty variable counts as none.
func Flags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "dir", Aliases: []string{"d"}, Usage: "the shared `DIRECTORY` with the locks (default: .) [$" + place.EnvDir + "]", Category: "LOCK"},
		&cli.StringFlag{Name: "group", Aliases: []string{"g"}, Usage: "the lock `GROUP`, a directory in it (default: .locks; of another source, what has no group) [$" + place.EnvGroup + "]", Category: "LOCK"},
		&cli.StringFlag{Name: "name", Aliases: []string{"n", "lockname", "l"}, Usage: "the lock's `NAME` (default: lock; of a CloudShell reservation, MUTEX)", Category: "LOCK"},
		&cli.StringFlag{Name: "source", Usage: "where the locks live, as a `URL`; -d DIRECTORY stands for file:DIRECTORY; see multilock --help [$" + place.EnvSource + "]", Category: "LOCK"},
		toggle("legacy-peers", "hosts with the Python MultiLock use the same group; all hosts must say so [$"+place.EnvLegacyPeers+"]", "LOCK"),
		toggle("json", "print the result as JSON", "OUTPUT"),
		toggle("quiet", "print errors only; a refusal is none, its exit code says enough", "OUTPUT", "q"),
		toggle("verbose", "print what is done, too", "OUTPUT", "v"),
	}
}

// toggle is an option without a value, and without a remark on its default.
func toggle(name, usage, category string, aliases ...string) *cli.BoolFlag {
	return &cli.BoolFlag{Name: name, Aliases: aliases, Usage: usage, Category: category, DisableDefaultText: true}
}

// readCommon reads the options that every command has.
func readCommon(c *cli.Context, e *Env) (common, error) {
	asked := place.Asked{Dir: commonString(c, "dir"), Source: commonString(c, "source"), Group: commonString(c, "group"), Name: commonString(c, "name")}
	if level := givenAt(c, "legacy-peers"); level != nil {
		said := level.Bool("legacy-peers")
		asked.LegacyPeers = &said
	}
	place, err := e.Kinds.Find(asked, e.Env)
	if err != nil {
		err = &console.UsageError{Command: c.Command.Name, Err: err}
	}
	return common{place, console.Output{JSON: commonBool(c, "json"), Quiet: commonBool(c, "quiet"), Verbose: commonBool(c, "verbose")}}, err
}

// action is a command's: the options that every command has are read, the others are
// checked before anything is touched, then the source is opened, and closed again.
func action(e *Env, o *common, check func(*cli.Context) error, do func(context.Context, *place.Source) error) cli.ActionFunc {
	return func(c *cli.Context) (err error) {
		if *o, err = readCommon(c, e); err != nil {
			return err
		}
		if err := check(c); err != nil {
			return err
		}
		src, err := e.Kinds.Open(c.Context, e.Env, o.Place)
		if err == nil {
			err = src.Close(do(c.Context, src))
		}
		return o.locate(err)
	}
}

// locate adds to an error where its lock is.
func (o *common) locate(err error) error {
	if err == nil {
		return nil
	}
	return &place.LocatedError{Place: o.Place, Quiet: o.Quiet, Err: err}
}

// givenAt finds where on the command line an option is given: at the command
// itself, or before it.
func givenAt(c *cli.Context, name string) *cli.Context {
	for _, level := range c.Lineage() {
		if slices.Contains(level.LocalFlagNames(), name) {
			return level
		}
	}
	return nil
}

// namesAsked are the locks that a command is to deal with, as arguments or with
// -n; none if nothing was said.
func namesAsked(c *cli.Context) []string {
	names := c.Args().Slice()
	if level := givenAt(c, "name"); level != nil && !slices.Contains(names, level.String("name")) {
		names = append(names, level.String("name"))
	}
	return names
}

// namesOrAll are the names that were asked for; if there are none, all.
func namesOrAll(asked []string, all func() ([]string, error)) ([]string, error) {
	if len(asked) > 0 {
		return asked, nil
	}
	return all()
}

// commonString is nil if the option is not given.
func commonString(c *cli.Context, name string) *string {
	level := givenAt(c, name)
	if level == nil {
		return nil
	}
	value := level.String(name)
	return &value
}

func commonBool(c *cli.Context, name string) bool {
	level := givenAt(c, name)
	return level != nil && level.Bool(name)
}
