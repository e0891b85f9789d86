package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/command"
	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/help"
)

// arrange brings a command line into the form that the library reads: options before
// arguments, each on its own. So options may follow a command's arguments ("break NAME
// --force"), and short ones may be glued and combined as getopt(3) does it (-w10, -nNAME,
// -qE0). The library's own way to combine them looks for the word to split among all words,
// a job's and the values of options included, and knows no glued values.
//
// What belongs to a job, and everything after "--", stays as it is. Short is of what -h asks for.
func arrange(app *cli.App, args []string) (ours []string, short string, err error) {
	line := &commandLine{words: args, next: 1}
	ours, err = line.program(app)
	ours = append(args[:1:1], ours...)
	if err != nil || line.over() {
		return ours, line.short(help.Program), err
	}
	called := line.take()
	ours = append(ours, called)
	asked := app.Command(called)
	if asked == nil {
		return append(ours, line.rest()...), line.short(help.Program), nil
	}
	theirs, err := line.command(asked)
	return append(ours, theirs...), line.short(asked.Name), err
}

// commandLine is what is still to be read of one.
type commandLine struct {
	words []string
	next  int
	help  string // the option that asked for help
	// spelling is, for each option of this level that was read, the one of its names that it had.
	spelling map[string]string
}

func (l *commandLine) over() bool     { return l.next >= len(l.words) }
func (l *commandLine) peek() string   { return l.words[l.next] }
func (l *commandLine) rest() []string { return l.words[l.next:] }

// short is what is to be shown on one screen, if that was asked for.
func (l *commandLine) short(what string) string {
	if l.help != "-h" {
		return ""
	}
	return what
}

func (l *commandLine) take() string {
	l.next++
	return l.words[l.next-1]
}

// program reads the options before the command's name.
func (l *commandLine) program(app *cli.App) (options []string, err error) {
	l.spelling = map[string]string{}
	for !l.over() && isOption(l.peek()) {
		if l.peek() == "--" {
			return append(options, l.take()), nil
		}
		words, err := l.option(app.Flags)
		if err != nil {
			return nil, &console.UsageError{Err: err}
		}
		options = append(options, words...)
	}
	return options, nil
}

// command reads what follows a command's name. Options where help is asked for are dropped:
// they are no topics of help.
func (l *commandLine) command(c *cli.Command) ([]string, error) {
	var options, arguments []string
	l.spelling = map[string]string{}
	for !l.over() {
		word := l.peek()
		if word == "--" || word == ":::" || !isOption(word) && c.Name == "run" {
			break
		}
		if !isOption(word) {
			arguments = append(arguments, l.take())
			continue
		}
		words, err := l.option(c.Flags)
		if err != nil {
			return nil, &console.UsageError{Command: c.Name, Err: err, Code: command.UsageCode(c.Name)}
		}
		if l.help != "" {
			return []string{l.help}, nil
		}
		options = append(options, words...)
	}
	return slices.Concat(options, arguments, l.rest()), nil
}

// isOption says whether a word is an option, and not an argument: "-" is one of those.
func isOption(word string) bool { return len(word) > 1 && word[0] == '-' }

// isHelp says whether a word by itself asks for help.
func isHelp(word string) bool {
	return word == "-h" || word == "--help" || word == "-help" || word == "--h"
}

// option reads one word with options, and the value of the last of them. What it does not
// know it leaves to the library, which will say so.
func (l *commandLine) option(flags []cli.Flag) ([]string, error) {
	word := l.take()
	option, value, assigned := strings.Cut(word, "=")
	flag := findFlag(flags, strings.TrimLeft(option, "-"))
	isLong := strings.HasPrefix(word, "--") || len(option) > 2 && flag != nil // one dash was always enough
	switch {
	case isHelp(word):
		l.help = word
	case !isLong && len(word) > 2:
		return l.cluster(flags, word)
	case flag == nil:
	case assigned:
		return []string{l.spelled(flag, option) + "=" + value}, nil
	case takesValue(flag):
		return l.withValue(nil, l.spelled(flag, option)), nil
	default:
		return []string{l.spelled(flag, option)}, nil
	}
	return []string{word}, nil
}

// cluster reads short options in one word. All after the first one that takes a value is
// that value.
func (l *commandLine) cluster(flags []cli.Flag, word string) (options []string, err error) {
	for at, letter := range word[1:] {
		option, after := "-"+string(letter), word[1+at+len(string(letter)):]
		flag := findFlag(flags, option[1:])
		switch {
		case isHelp(option):
			l.help = option
		case flag == nil && at == 0:
			return nil, fmt.Errorf("there is no option %s; see --help", word)
		case flag == nil:
			return nil, fmt.Errorf("there is no option %s, as in %s (a long option has two dashes); see --help", option, word)
		case takesValue(flag) && after == "":
			return l.withValue(options, l.spelled(flag, option)), nil
		case takesValue(flag):
			return append(options, l.spelled(flag, option), strings.TrimPrefix(after, "=")), nil
		case after != "" && after[0] == '=': // -q=false
			return append(options, l.spelled(flag, option)+after), nil
		default:
			options = append(options, l.spelled(flag, option))
		}
	}
	if l.help != "" {
		options = append(options, l.help)
	}
	return options, nil
}

// spelled is an option as it was spelled first: the library takes two forms of one option
// for a contradiction. The last value counts, as everywhere. Former spellings become today's.
func (l *commandLine) spelled(f cli.Flag, option string) string {
	name := f.Names()[0]
	if command.Formerly(f, strings.TrimLeft(option, "-")) {
		option = "--" + name
	}
	if l.spelling[name] == "" {
		l.spelling[name] = option
	}
	return l.spelling[name]
}

// withValue adds an option whose value is the next word, whatever that looks like.
func (l *commandLine) withValue(options []string, option string) []string {
	if options = append(options, option); !l.over() {
		options = append(options, l.take())
	}
	return options
}

func findFlag(flags []cli.Flag, name string) cli.Flag {
	i := slices.IndexFunc(flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) || command.Formerly(f, name) })
	if i < 0 || name == "" {
		return nil
	}
	return flags[i]
}

func takesValue(f cli.Flag) bool {
	documented, ok := f.(cli.DocGenerationFlag)
	return ok && documented.TakesValue()
}

// findCommand is the name of the command that is called; "" if none is.
func findCommand(app *cli.App, args []string) string {
	line := &commandLine{words: args, next: 1}
	if _, err := line.program(app); err != nil || line.over() {
		return ""
	}
	return line.peek()
}
