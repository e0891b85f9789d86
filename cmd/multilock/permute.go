package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"
)

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
