package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/command"
	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/options"
)

const description = `multilock takes a lock on a directory that hosts share (usually on NFS), and runs
jobs under it: the same cron line on every host, and exactly one runs it.

   multilock -d /shared/jobs run -n nightly -- /usr/local/bin/nightly.sh

A lock NAME of a group is the directory BASE/GROUP/NAME. It is renewed while its
holder lives, and taken over when the holder is dead: at once on the same host,
after its time to live (--ttl) on another. "multilock status" shows who holds
what, and why that counts as alive.

Hosts that share something else than a filesystem name it with --source:

   mongodb://USER@HOST/DATABASE.COLLECTION   a document (also mongodb+srv)
   etcd://HOST,HOST,HOST/PREFIX              a key and a lease
   postgres://USER@HOST/DATABASE             a row (?schema=NAME)
   cloudshell://USER@HOST:PORT/RESERVATION   a service with its alias, for a
                                   lock alone; "cloudshell:" in a script there
   cook+file:///DIRECTORY?period=5m          released by time alone, once in 5m
   cook+mongodb://..., cook+etcd://..., cook+postgres://...&period=5m

The password of USER is never part of a command line: put it into MULTILOCK_PASSWORD,
or into a file that MULTILOCK_PASSWORD_FILE names, or the whole URL into
MULTILOCK_SOURCE. A driver in CloudShell puts its token into
MULTILOCK_CLOUDSHELL_TOKEN, and no user into the URL. "multilock doctor" tells what can
be relied on there.

Options may stand before the command's name or after it, and after its arguments; short
ones may be glued and combined: -qE0 -w10 is -q -E 0 -w 10. "run" reads options up to its
COMMAND, whose own are left alone; -- ends the options everywhere.

"multilock COMMAND -h" is a command on one screen, "multilock help TOPIC" explains what
several have in common: exit-codes, environment, locks, batch.

A DURATION is 90s, 5m, 2h30m, 1d, or a number of seconds.

` + console.ExitTable

// run is the program: it parses, runs one command, and says how to end.
func run(ctx context.Context, e *command.Env, args []string) outcome {
	app := appFor(e, args)
	e.SpeakJSON = console.AsksForJSON(args) // until the options are read
	outcome := conclude(e, serve(ctx, e, app, args))
	e.Flush()
	return outcome
}

// serve does what a command line asks for.
func serve(ctx context.Context, e *command.Env, app *cli.App, args []string) error {
	line, err := arrange(app, e.Line, args)
	switch {
	case err != nil:
		return err
	case line.help == "-h":
		return e.Print("%s", command.Short(line.command))
	case line.help != "":
		return e.Print("%s", command.Long(app, line.command))
	}
	return app.RunContext(ctx, line.ours)
}

// newApp is the program with all of its commands.
func newApp(e *command.Env) *cli.App { return withCommands(bareApp(e), e, commands()) }

// appFor is the program for one command line: with the command that it calls. To make all of them
// costs what a tenth of a short job does. All are there where none is called by its own name, and for
// help.
func appFor(e *command.Env, args []string) *cli.App {
	app, all := bareApp(e), commands()
	called := findCommand(args)
	if i := slices.IndexFunc(all, func(one maker) bool { return one.name == called }); i >= 0 && called != command.HelpCommand {
		all = all[i : i+1]
	}
	return withCommands(app, e, all)
}

// maker makes the command of a name.
type maker struct {
	name string
	make func(*command.Env) *cli.Command
}

func commands() []maker {
	return append([]maker{
		{"run", command.Run},
		{"batch", command.Batch},
		{"wait", command.Wait},
		{"status", command.Status},
		{"acquire", command.Acquire},
		{"release", command.Release},
		{"break", command.Break},
		{"clean", command.Clean},
		{"history", command.History},
		{"overdue", command.Overdue},
		{"metrics", command.Metrics},
		{"logs", command.Logs},
		{"report", command.Report},
		{"doctor", command.Doctor},
		{"completion", command.Completion},
		{"config", command.Config},
		{"version", func(e *command.Env) *cli.Command { return command.Version(e, version()) }},
		{command.HelpCommand, command.Help},
		{command.KeepCommand, command.Keep},
	}, forRelease()...)
}

func bareApp(e *command.Env) *cli.App {
	e.Line = options.NewLine()
	printVersion := false
	return &cli.App{
		Name:        "multilock",
		Usage:       "a lock and a job runner for hosts that share something",
		Description: description,
		HideHelp:    true, // package options has it
		HideVersion: true,
		Writer:      e.Stdout,
		ErrWriter:   e.Stderr,
		Flags:       e.Flags(options.Program, options.Values{"version": &printVersion}),
		// Errors come back to run, which alone decides about the exit code.
		ExitErrHandler: func(*cli.Context, error) {},
		OnUsageError:   usageError(e),
		Action: func(c *cli.Context) error {
			if printVersion {
				return e.Print("multilock %s\n", version().Version)
			}
			if c.Args().Present() {
				return &console.UsageError{Command: c.Args().First(), Err: noCommand(c)}
			}
			return command.Begin(e)
		},
	}
}

func withCommands(app *cli.App, e *command.Env, makers []maker) *cli.App {
	for _, one := range makers {
		each := one.make(e)
		if each.OnUsageError = usageError(e); each.Flags == nil {
			each.Flags = e.Flags(each.Name, nil)
		}
		each.HideHelp = true // or its first argument, if it is "help" or "h", would ask for help
		app.Commands = append(app.Commands, each)
	}
	return app
}

// noCommand says what may have been meant.
func noCommand(c *cli.Context) error {
	if meant := console.Nearest(c.Args().First(), command.Names(c.App)); meant != "" {
		return fmt.Errorf("there is no such command; did you mean %q? See multilock --help", meant)
	}
	return errors.New("there is no such command; see multilock --help")
}

// usageError keeps the library from printing the whole help text over the error, which arrange has
// left nothing but a value for.
func usageError(e *command.Env) cli.OnUsageErrorFunc {
	return func(c *cli.Context, err error, _ bool) error {
		name := ""
		if c.Command != nil && c.Command.Name != options.Program {
			name = c.Command.Name
		}
		return &console.UsageError{Command: name, Err: cmp.Or(e.Line.Err, err)}
	}
}
