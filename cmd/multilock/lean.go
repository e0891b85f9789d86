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
	category := func(category string) string {
		if helped {
			return category
		}
		return ""
	}
	for i, flag := range flags {
		switch flag := flag.(type) {
		case *cli.GenericFlag:
			flags[i] = &namedGeneric{flag, namesOf(flag.Name, flag.Aliases)}
			flag.Category = category(flag.Category)
		case *cli.StringFlag:
			flags[i] = &namedString{flag, namesOf(flag.Name, flag.Aliases)}
			flag.Category = category(flag.Category)
		case *cli.BoolFlag:
			flags[i] = &namedBool{flag, namesOf(flag.Name, flag.Aliases)}
			flag.Category = category(flag.Category)
		}
	}
	return flags
}

func namesOf(name string, aliases []string) []string { return append([]string{name}, aliases...) }

type namedGeneric struct {
	*cli.GenericFlag
	names []string
}

func (f *namedGeneric) Names() []string { return f.names }

type namedString struct {
	*cli.StringFlag
	names []string
}

func (f *namedString) Names() []string { return f.names }

type namedBool struct {
	*cli.BoolFlag
	names []string
}

func (f *namedBool) Names() []string { return f.names }
