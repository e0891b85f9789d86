package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/multilock/fslock"
)

// common holds the options that every command has, before or after its name.
type common struct {
	base, group, name, source string
	legacyPeers               bool
	json, quiet, verbose      bool
}

// commonFlags are defined twice, for the program and for each command. Only the
// program's take their default from the environment, so that an option on the
// command line wins over it wherever it stands.
func commonFlags(program bool) []cli.Flag {
	env := func(name string) []string {
		if program {
			return []string{name}
		}
		return nil
	}
	return []cli.Flag{
		&cli.StringFlag{Name: "dir", Aliases: []string{"d"}, EnvVars: env("MULTILOCK_DIR"), Usage: "the shared `DIRECTORY` with the locks (default: .)", Category: "LOCK"},
		&cli.StringFlag{Name: "group", Aliases: []string{"g"}, EnvVars: env("MULTILOCK_GROUP"), Usage: "the lock `GROUP`, a directory in it (default: .locks)", Category: "LOCK"},
		&cli.StringFlag{Name: "name", Aliases: []string{"n", "lockname", "l"}, Usage: "the lock's `NAME` (default: lock)", Category: "LOCK"},
		&cli.StringFlag{Name: "source", EnvVars: env("MULTILOCK_SOURCE"), Usage: "where the locks live, as a `URL`: file:DIRECTORY", Category: "LOCK"},
		&cli.BoolFlag{Name: "legacy-peers", EnvVars: env("MULTILOCK_LEGACY_PEERS"), Usage: "hosts with the Python MultiLock use the same group", Category: "LOCK"},
		&cli.BoolFlag{Name: "json", Usage: "print the result as JSON", Category: "OUTPUT"},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print errors only", Category: "OUTPUT"},
		&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "print what is done, too", Category: "OUTPUT"},
	}
}

func readCommon(c *cli.Context) common {
	return common{
		base: commonString(c, "dir", "."), group: commonString(c, "group", fslock.DefaultGroup),
		name: commonString(c, "name", fslock.DefaultName), source: commonString(c, "source", ""),
		legacyPeers: commonBool(c, "legacy-peers"),
		json:        commonBool(c, "json"), quiet: commonBool(c, "quiet"), verbose: commonBool(c, "verbose"),
	}
}

// commonString looks an option up at the command first, then at the program.
func commonString(c *cli.Context, name, fallback string) string {
	for _, level := range c.Lineage() {
		if slices.Contains(level.LocalFlagNames(), name) {
			return level.String(name)
		}
	}
	return fallback
}

func commonBool(c *cli.Context, name string) bool {
	for _, level := range c.Lineage() {
		if slices.Contains(level.LocalFlagNames(), name) {
			return level.Bool(name)
		}
	}
	return false
}

// duration is a flag's value: a Go duration, a number of seconds, or days ("2d").
type duration struct {
	value time.Duration
	set   bool
}

func (d *duration) Set(text string) error {
	value, err := parseDuration(text)
	if err != nil {
		return err
	}
	d.value, d.set = value, true
	return nil
}

func (d *duration) String() string {
	if d == nil || !d.set {
		return ""
	}
	return d.value.String()
}

func parseDuration(text string) (time.Duration, error) {
	value, err := time.ParseDuration(text)
	if number, isDays := strings.CutSuffix(text, "d"); isDays {
		value, err = scaled(number, 24*time.Hour)
	} else if err != nil {
		value, err = scaled(text, time.Second)
	}
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is no duration; write 90s, 5m, 2h, 1d, or a number of seconds", text)
	case value < 0:
		return 0, errors.New("a duration cannot be negative")
	}
	return value, nil
}

// maxScaled keeps scaled from overflowing: a hundred years.
const maxScaled = 100 * 365 * 24 * time.Hour

func scaled(text string, unit time.Duration) (time.Duration, error) {
	number, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, err
	}
	if !(number*float64(unit) <= float64(maxScaled)) { // also refuses what is not a number
		return 0, errors.New("out of range")
	}
	return time.Duration(number * float64(unit)), nil
}

// waitLimit is the value of --wait: a duration, or "forever".
type waitLimit struct {
	duration
	forever bool
}

func (w *waitLimit) Set(text string) error {
	if text == "forever" {
		w.forever, w.set = true, true
		return nil
	}
	return w.duration.Set(text)
}

// waits says whether to wait at all.
func (w *waitLimit) waits() bool { return w.forever || w.value > 0 }

// permute lets options follow a command's arguments ("break NAME --force"). It
// leaves alone what belongs to a job, and everything after "--".
func permute(app *cli.App, args []string) []string {
	at, command := findCommand(app, args)
	if command == nil || command.Name == "run" {
		return args
	}
	var options, rest []string
	for i := at + 1; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			rest = append(rest, args[i:]...)
			break
		}
		if len(arg) < 2 || arg[0] != '-' {
			rest = append(rest, arg)
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
			_, isBool := flag.(*cli.BoolFlag)
			return !isBool
		}
	}
	return false
}
