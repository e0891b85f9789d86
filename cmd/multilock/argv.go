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

// arrange brings a command line into the form that the library reads: options before
// arguments, each on its own and by its one long name. So options may follow a command's arguments
// ("break NAME --force"), and short ones may be glued and combined as getopt(3) does it (-w10,
// -nNAME, -qE0). The library's own way to combine them looks for the word to split among all words,
// a job's and the values of options included, and knows no glued values.
//
// What belongs to a job, and everything after "--", stays as it is.
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

// commandLine is one that is read.
type commandLine struct {
	words []string
	next  int
	said  *options.Line
	level string // the command whose options are read, or the program

	called  string          // the command's name, as it was typed
	command *cli.Command    // nil for an unknown name
	open    *options.Option // whose value is missing
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

// program reads the options before the command's name.
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

// arguments reads what follows a command's name, up to where help is asked for.
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

// isOption says whether a word is an option, and not an argument: "-" is one of those.
func isOption(word string) bool { return len(word) > 1 && word[0] == '-' }

// isHelp says whether a word by itself asks for help.
func isHelp(word string) bool {
	return word == "-h" || word == "--help" || word == "-help" || word == "--h"
}

// option reads one word with options, and the value of the last of them.
func (l *commandLine) option() error {
	word := l.take()
	typed, value, assigned := strings.Cut(word, "=")
	name := strings.TrimLeft(typed, "-")
	o := options.Find(l.level, name)
	isLong := strings.HasPrefix(word, "--") || len(typed) > 2 && o != nil // one dash was always enough
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

// cluster reads short options in one word. All after the first one that takes a value is
// that value.
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

// unknown says what may have been meant.
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

// addNext adds an option; its value, if it takes one, is the next word, whatever that looks like.
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
}

// spelled is an option as messages call it: as it was typed, but for one dash and former spellings.
func spelled(o *options.Option, typed string) string {
	if name := strings.TrimLeft(typed, "-"); o.Formerly(name) || len(name) > 1 {
		return "--" + o.Name
	}
	return typed
}

// findCommand is the name of the command that is called; "" if none is.
func findCommand(args []string) string {
	line := &commandLine{words: args, next: 1, said: options.NewLine(), level: options.Program}
	if err := line.program(); err != nil || line.over() {
		return ""
	}
	return line.peek()
}
