package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// A short job is over sooner than the library is ready: it writes the help of every
// option that it is given, and for each of them it looks all others up, whose names
// it works out with a regular expression every time. What is here spares it both.
// The help is written for options that have a category.

// spare leaves away the options of all commands but the one that is called. If none
// is, as for help, there is time enough.
func spare(app *cli.App, args []string) {
	_, called := findCommand(app, args)
	helped := called == nil || slices.ContainsFunc(args, asksForHelp)
	app.Flags = named(app.Flags, helped)
	for _, command := range app.Commands {
		if called != nil && command != called {
			command.Flags = nil
		}
		command.Flags = named(command.Flags, helped)
	}
}

// asksForHelp says so of a job's own --help, too: that costs a little time.
func asksForHelp(arg string) bool {
	word, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	return word == "h" || word == "help"
}

// named makes options that know their names, and have a category if help is asked for.
func named(flags []cli.Flag, helped bool) []cli.Flag {
	for i, f := range flags {
		one := namedFlag{flag: f.(flag), names: f.Names()} //nolint:forcetypeassert // all of the library's are
		if helped {
			one.category = one.flag.GetCategory()
		}
		flags[i] = &one
	}
	return flags
}

// flag is what the library asks of its options.
type flag interface {
	cli.DocGenerationFlag
	cli.VisibleFlag
	cli.CategorizableFlag
	cli.RequiredFlag
	cli.ActionableFlag
}

type namedFlag struct {
	flag
	names    []string
	category string
}

func (f *namedFlag) Names() []string     { return f.names }
func (f *namedFlag) GetCategory() string { return f.category }
