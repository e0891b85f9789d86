package main

import (
	"slices"

	"github.com/urfave/cli/v2"
)

// A short job is over sooner than the library is ready: it writes the help of every
// option that it is given, and for each of them it looks all others up, whose names
// it works out with a regular expression every time. What is here spares it both.

// spare leaves away the options of all commands but the one that is called. If none
// is, as for help, there is time enough.
func spare(app *cli.App, args []string) {
	_, called := findCommand(app, args)
	app.Flags = named(app.Flags)
	for _, command := range app.Commands {
		if called != nil && command != called {
			command.Flags = nil
		}
		command.Flags = named(command.Flags)
	}
}

// named makes options that know their names.
func named(flags []cli.Flag) []cli.Flag {
	for i, flag := range flags {
		names := slices.Clip(flag.Names())
		switch flag := flag.(type) {
		case *cli.GenericFlag:
			flags[i] = &namedGeneric{flag, names}
		case *cli.StringFlag:
			flags[i] = &namedString{flag, names}
		case *cli.BoolFlag:
			flags[i] = &namedBool{flag, names}
		}
	}
	return flags
}

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
