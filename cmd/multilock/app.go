package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/command"
	"github.com/multilock/go/cmd/multilock/internal/console"
)

const description = `multilock takes a lock on a directory that hosts share (usually on NFS), and runs
jobs under it: the same cron line on every host, and exactly one runs it.

   multilock -d /shared/jobs run -n nightly -- /usr/local/bin/nightly.sh

A lock NAME of a group is the directory BASE/GROUP/NAME. It is renewed while its
holder lives, and taken over when the holder is dead: at once on the same host,
after its time to live (--ttl) on another. "multilock status" shows who holds
what, and why that counts as alive.

Hosts that share something else than a filesystem name it with --source:

   mongodb://USER@HOST/DATABASE.COLLECTION       a lock is a document (also mongodb+srv)
   cloudshell://USER@HOST:PORT/RESERVATION       a lock is a service with its alias;
                                                 just "cloudshell:" in a script there
   cook+file:///DIRECTORY?period=5m              once in a period, released by time alone
   cook+mongodb://HOST/DATABASE.COLLECTION?period=5m

The password of USER is never part of a command line: put it into MULTILOCK_PASSWORD,
or into a file that MULTILOCK_PASSWORD_FILE names, or the whole URL into
MULTILOCK_SOURCE. "multilock doctor" tells what can be relied on there.

A DURATION is 90s, 5m, 2h30m, 1d, or a number of seconds.

` + console.ExitTable

// run is the program: it parses, runs one command, and says how to end.
func run(ctx context.Context, e *command.Env, args []string) outcome {
	app := newApp(e)
	spare(app, args)
	args = permute(app, args)
	outcome := conclude(e, app.RunContext(ctx, args))
	e.Flush()
	return outcome
}

func newApp(e *command.Env) *cli.App {
	app := &cli.App{
		Name:            "multilock",
		Usage:           "a lock and a job runner for hosts that share a filesystem, or something else",
		Description:     description,
		HideHelpCommand: false,
		HideVersion:     true,
		Writer:          e.Stdout,
		ErrWriter:       e.Stderr,
		Flags:           append(command.Flags(), &cli.BoolFlag{Name: "version", Usage: "print the version", DisableDefaultText: true}),
		Commands: []*cli.Command{
			command.Run(e), command.Batch(e), command.Wait(e), command.Status(e), command.Acquire(e), command.Release(e), command.Break(e),
			command.Clean(e), command.History(e), command.Logs(e), command.Report(e), command.Doctor(e), command.Keep(e),
		},
		// Errors come back to run, which alone decides about the exit code.
		ExitErrHandler: func(*cli.Context, error) {},
		OnUsageError:   usageError,
		Action: func(c *cli.Context) error {
			if c.Bool("version") {
				return e.Print("multilock %s\n", version())
			}
			if c.Args().Present() {
				return &console.UsageError{Command: c.Args().First(), Err: errors.New("there is no such command; see multilock --help")}
			}
			return cli.ShowAppHelp(c)
		},
		EnableBashCompletion: true,
		Suggest:              true,
	}
	for _, each := range app.Commands {
		each.Flags = append(each.Flags, command.Flags()...)
		each.OnUsageError = usageError
		each.HideHelpCommand = true // or its first argument, if it is "help" or "h", would ask for help
	}
	return app
}

// usageError keeps the library from printing the whole help text over the error.
func usageError(c *cli.Context, err error, _ bool) error {
	name := ""
	if c.Command != nil && c.Command.Name != "multilock" {
		name = c.Command.Name
	}
	return &console.UsageError{Command: name, Err: inOurWords(err)}
}

// inOurWords makes a sentence for people of what package flag says.
func inOurWords(err error) error {
	text := err.Error()
	if option, ok := strings.CutPrefix(text, "flag provided but not defined: "); ok {
		return fmt.Errorf("there is no option %s; see --help", dashes(option))
	}
	if option, ok := strings.CutPrefix(text, "flag needs an argument: "); ok {
		return fmt.Errorf("%s needs a value", dashes(option))
	}
	value := regexp.MustCompile(`^invalid (?:boolean )?value ".*" for (?:flag )?(-\S+): (.*)$`)
	if found := value.FindStringSubmatch(text); found != nil {
		return fmt.Errorf("%s: %s", dashes(found[1]), found[2])
	}
	return err
}

// dashes gives a long option both of its dashes.
func dashes(option string) string {
	if name := strings.TrimLeft(option, "-"); len(name) > 1 {
		return "--" + name
	}
	return option
}

// stamp is the version of what scripts/build has built, which sets it: the tag and the commit.
var stamp string

func version() string {
	if stamp != "" {
		return stamp
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(development)"
	}
	return info.Main.Version
}

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

// permute lets options follow a command's arguments ("break NAME --force"), and drops
// those where help is asked for: they are no topics of help. It leaves alone what
// belongs to a job, and everything after "--".
func permute(app *cli.App, args []string) []string {
	at, command := findCommand(app, args)
	if command == nil {
		return args
	}
	var options, rest []string
	for i := at + 1; i < len(args); i++ {
		arg := args[i]
		isOption := len(arg) > 1 && arg[0] == '-'
		if arg == "--" || !isOption && command.Name == "run" {
			rest = append(rest, args[i:]...)
			break
		}
		if !isOption {
			rest = append(rest, arg)
			continue
		}
		if name := strings.TrimLeft(arg, "-"); name == "help" || name == "h" {
			return append(slices.Clone(args[:at+1]), arg)
		}
		if number, short := strings.CutPrefix(arg, "-j"); short && command.Name == "batch" && isNumber(number) {
			options = append(options, "-j", number) // as everybody writes it
			continue
		}
		options = append(options, arg)
		if takesValue(command.Flags, arg) && i+1 < len(args) {
			i++
			options = append(options, args[i])
		}
	}
	return slices.Concat(args[:at+1], options, rest)
}

// findCommand finds the command's name among the arguments.
func findCommand(app *cli.App, args []string) (int, *cli.Command) {
	for i := 1; i < len(args); i++ {
		if strings.HasPrefix(args[i], "-") {
			if takesValue(app.Flags, args[i]) {
				i++
			}
			continue
		}
		return i, app.Command(args[i])
	}
	return 0, nil
}

// takesValue says whether the argument after an option is its value.
func takesValue(flags []cli.Flag, arg string) bool {
	name := strings.TrimLeft(arg, "-")
	if strings.Contains(name, "=") {
		return false
	}
	for _, flag := range flags {
		if slices.Contains(flag.Names(), name) {
			documented, ok := flag.(cli.DocGenerationFlag)
			return ok && documented.TakesValue()
		}
	}
	return false
}

func isNumber(s string) bool {
	_, err := strconv.Atoi(s)
	return err == nil
}
