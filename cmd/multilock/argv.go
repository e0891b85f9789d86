package main

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/options"
)

// arrange converts a command line to the form that the library parses: options before arguments, each in a
// separate word and with its long name. So options may follow a command's arguments ("break NAME --force"),
// and short options may be combined with each other and with a value, as in getopt(3) (-w10, -nNAME, -qE0).
// The library can only combine options without values, and looks for combined options in all words, even in a
// job's words and in values.
//
// The words of a job, and everything after "--", remain unchanged.
func arrange(app *cli.App, said *options.Line, args []string) (*commandLine, error) {
	line := &commandLine{words: args, next: 1, ours: args[:1:1], said: said, level: options.Program}
	if err := line.program(); err != nil || line.over() {
		return line, err
	}
	line.called = line.take()
	line.ours = append(line.ours, line.called)
	if line.command = app.Command(line.called); line.command == nil {
		line.ours = append(line.ours, line.rest()...)
		return line, nil
	}
	line.level = line.command.Name
	return line, line.arguments()
}

// commandLine is the state while a command line is parsed.
type commandLine struct {
	words []string
	next  int
	said  *options.Line
	level string // the command whose options are parsed, or the program

	called  string          // the command's name, as typed
	command *cli.Command    // nil for an unknown name
	open    *options.Option // an option whose value is missing
	ours    []string        // for the library
	help    string          // the option that asked for help
}

func (l *commandLine) over() bool     { return l.next >= len(l.words) }
func (l *commandLine) peek() string   { return l.words[l.next] }
func (l *commandLine) rest() []string { return l.words[l.next:] }

func (l *commandLine) take() string {
	l.next++
	return l.words[l.next-1]
}

// program parses the options before the command's name.
func (l *commandLine) program() error {
	for !l.over() && isOption(l.peek()) {
		if l.peek() == "--" {
			l.ours = append(l.ours, l.take())
			return nil
		}
		if err := l.option(); err != nil {
			return &console.UsageError{Err: err}
		}
	}
	return nil
}

// arguments parses what follows a command's name, until an option asks for help.
func (l *commandLine) arguments() error {
	var arguments []string
	for !l.over() && l.help == "" {
		word := l.peek()
		if word == "--" || word == ":::" || !isOption(word) && l.level == "run" {
			break
		}
		if !isOption(word) {
			arguments = append(arguments, l.take())
			continue
		}
		if err := l.option(); err != nil {
			return &console.UsageError{Command: l.level, Err: err}
		}
	}
	l.ours = slices.Concat(l.ours, arguments, l.rest())
	return nil
}

// isOption reports whether a word is an option. "-" is an argument.
func isOption(word string) bool { return len(word) > 1 && word[0] == '-' }

// isHelp reports whether a word asks for help.
func isHelp(word string) bool {
	return word == "-h" || word == "--help" || word == "-help" || word == "--h"
}

// option parses one word with options, and the value of the last one.
func (l *commandLine) option() error {
	word := l.take()
	typed, value, assigned := strings.Cut(word, "=")
	name := strings.TrimLeft(typed, "-")
	o := options.Find(l.level, name)
	isLong := strings.HasPrefix(word, "--") || len(typed) > 2 && o != nil // one dash suffices
	switch {
	case isHelp(word):
		l.help = word
		return nil
	case !isLong && len(word) > 2:
		return l.cluster(word)
	case o == nil:
		return l.unknown(typed)
	case assigned:
		l.add(o, typed, value)
		return nil
	}
	return l.addNext(o, typed)
}

// cluster parses short options in one word. After an option that takes a value, the rest of the word is the
// value.
func (l *commandLine) cluster(word string) error {
	for after := word[1:]; after != ""; {
		_, size := utf8.DecodeRuneInString(after)
		option, first := "-"+after[:size], len(after) == len(word)-1
		after = after[size:]
		o := options.Find(l.level, option[1:])
		switch {
		case isHelp(option):
			l.help = option
		case o == nil && first:
			return fmt.Errorf("there is no option %s; see --help", word)
		case o == nil:
			return fmt.Errorf("there is no option %s, as in %s (a long option has two dashes); see --help", option, word)
		case o.TakesValue() && after != "", strings.HasPrefix(after, "="): // -q=false
			l.add(o, option, strings.TrimPrefix(after, "="))
			return nil
		default:
			if err := l.addNext(o, option); err != nil {
				return err
			}
		}
	}
	return nil
}

// unknown returns the error for an unknown option, with a suggestion.
func (l *commandLine) unknown(typed string) error {
	name := strings.TrimLeft(typed, "-")
	if len(name) > 1 {
		typed = "--" + name
	}
	if meant := console.Nearest(name, options.Names(options.Of(l.level))); meant != "" {
		return fmt.Errorf("there is no option %s; did you mean --%s? See --help", typed, meant)
	}
	return fmt.Errorf("there is no option %s; see --help", typed)
}

// addNext adds an option. If it takes a value, that is the next word, even if it looks like an option.
func (l *commandLine) addNext(o *options.Option, typed string) error {
	switch {
	case !o.TakesValue():
		l.add(o, typed, "true")
	case l.over():
		l.open = o
		return fmt.Errorf("%s needs a value", spelled(o, typed))
	default:
		l.add(o, typed, l.take())
	}
	return nil
}

// add adds an option with its value.
func (l *commandLine) add(o *options.Option, typed, value string) {
	l.said.Spelling[o.Name], l.said.Typed[o.Name] = spelled(o, typed), value
	l.ours = append(l.ours, "--"+o.Name+"="+value)
	switch {
	case o.Common:
	case o.TakesValue():
		l.said.Own = append(l.said.Own, "--"+o.Name+"="+value)
	case value == "true":
		l.said.Own = append(l.said.Own, "--"+o.Name)
	}
}

// spelled returns an option's name for messages: as typed, but with two dashes if it is long, and with the
// current name instead of a former one.
func spelled(o *options.Option, typed string) string {
	if name := strings.TrimLeft(typed, "-"); o.Formerly(name) || len(name) > 1 {
		return "--" + o.Name
	}
	return typed
}

// findCommand returns the name of the command in a command line, "" without one.
func findCommand(args []string) string {
	line := &commandLine{words: args, next: 1, said: options.NewLine(), level: options.Program}
	if err := line.program(); err != nil || line.over() {
		return ""
	}
	return line.peek()
}
