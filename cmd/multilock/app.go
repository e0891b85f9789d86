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

const description = `multilock acquires locks in a directory that hosts share (usually on NFS), and runs
jobs under them: the same cron line on every host, and exactly one host runs it.

   multilock -d /shared/jobs run -n nightly -- /usr/local/bin/nightly.sh

If the holder of a lock dies, another process takes the lock over: at once on the same
host, after the TTL (--ttl) on another. Locks can also live on a server (--source).

Options may be given before the command's name, after it, or after its arguments; short
ones may be combined: -qE0 -w10 is -q -E 0 -w 10. "run" reads options up to its COMMAND,
whose own options it passes on; -- ends the options of every command.

"multilock COMMAND -h" fits on one screen, "multilock COMMAND --help" lists all options,
and "multilock help COMMAND" has all details.

A DURATION is 90s, 5m, 2h30m, 1d, or a number of seconds.`

// run runs the program: it parses the command line, runs one command, and returns how to end.
func run(ctx context.Context, e *command.Env, args []string) outcome {
	app := appFor(e, args)
	e.SpeakJSON = console.AsksForJSON(args) // until the options are read
	outcome := conclude(e, serve(ctx, e, app, args))
	e.Flush()
	return outcome
}

// serve executes a command line.
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

// newApp returns the program with all commands.
func newApp(e *command.Env) *cli.App { return withCommands(bareApp(e), e, commands()) }

// appFor returns the program for one command line, with only the command that it calls: to make all of them
// takes a tenth of the time of a short job. It makes all commands if none is called by its full name, and for
// help.
func appFor(e *command.Env, args []string) *cli.App {
	app, all := bareApp(e), commands()
	called := findCommand(args)
	if i := slices.IndexFunc(all, func(one maker) bool { return one.name == called }); i >= 0 && called != command.HelpCommand {
		all = all[i : i+1]
	}
	return withCommands(app, e, all)
}

// maker makes the command with a name.
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
		Usage:       "a lock and a job runner for hosts that share a directory or a server",
		Description: description,
		HideHelp:    true, // package options implements it
		HideVersion: true,
		Writer:      e.Stdout,
		ErrWriter:   e.Stderr,
		Flags:       e.Flags(options.Program, options.Values{"version": &printVersion}),
		// Errors are returned to run, which determines the exit code.
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
		each.HideHelp = true // otherwise a first argument "help" or "h" would show help
		app.Commands = append(app.Commands, each)
	}
	return app
}

// noCommand suggests a command with a similar name.
func noCommand(c *cli.Context) error {
	if meant := console.Nearest(c.Args().First(), command.Names(c.App)); meant != "" {
		return fmt.Errorf("there is no such command; did you mean %q? See multilock --help", meant)
	}
	return errors.New("there is no such command; see multilock --help")
}

// usageError keeps the library from printing the whole help text above the error. After arrange, the only
// such errors are about values of options.
func usageError(e *command.Env) cli.OnUsageErrorFunc {
	return func(c *cli.Context, err error, _ bool) error {
		name := ""
		if c.Command != nil && c.Command.Name != options.Program {
			name = c.Command.Name
		}
		return &console.UsageError{Command: name, Err: cmp.Or(e.Line.Err, err)}
	}
}
