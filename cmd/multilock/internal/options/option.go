// Package options defines the options of all commands as data: one table with their names, values and
// descriptions, and one with the relations between them. Flags, checks, help, completions and manual
// pages are generated from these.
package options

import (
	"slices"
	"strings"
)

// The categories are the headings of the help.
const (
	basics   = "BASICS"
	schedule = "SCHEDULE"
	limits   = "LIMITS"
	output   = "OUTPUT"
	hooks    = "HOOKS"
	advanced = "ADVANCED"
)

// Program is the For of options before a command.
const Program = "multilock"

// Option is a row of the table.
type Option struct {
	Name, Letter string
	Former       string // old spellings that still work and are not shown
	Common       bool   // may stand before the command, and is accepted by all
	For          string // the commands that show it, with ! if -h does; * means all that open a source
	In           string // its category
	Value        string // the word for its value and an example; "" for a switch
	Words        string // proposed values; the only valid ones if the value is a string
	Default      string // the value without the option
	Else         string // behaviour without the option
	Range        string // of a number, such as 1..1000 or 1..
	Zero         string // why zero is rejected
	// Filled rejects an empty value, like all common options do. An empty value comes from an unset shell
	// variable, and a default would mean something else, such as another lock.
	Filled bool
	Env    string // environment variable with the value
	Help   string // -h shows the text before the first semicolon
}

// Of returns the options that a command shows, in the order of its help.
func Of(command string) []*Option {
	return filter(func(o *Option) bool { return o.shown(command) != "" })
}

// Accepted returns the options that a command accepts, its own first.
func Accepted(command string) []*Option {
	common := filter(func(o *Option) bool { return o.Common && o.shown(command) == "" })
	return append(Of(command), common...)
}

func filter(keep func(*Option) bool) (found []*Option) {
	for i := range table {
		if keep(&table[i]) {
			found = append(found, &table[i])
		}
	}
	return found
}

// withoutSource are the commands that open no source.
const withoutSource = Program + " config version completion help __keep __manual"

// shown returns the entry of a command in For, which lacks the "!" if -h leaves the option out, and
// "" if the command does not show the option.
func (o *Option) shown(command string) string {
	if command == Program && o.Common {
		return command
	}
	for mark := range strings.FieldsSeq(o.For) {
		name := strings.TrimSuffix(mark, "!")
		if name == command || name == "*" && !contains(withoutSource, command) {
			return mark
		}
	}
	return ""
}

// Find returns the option of a command with this name, letter or former spelling.
func Find(command, name string) *Option {
	all := Accepted(command)
	if i := slices.IndexFunc(all, func(o *Option) bool { return name != "" && o.Called(name) }); i >= 0 {
		return all[i]
	}
	return nil
}

// Called reports whether an option has this name, letter or former spelling.
func (o *Option) Called(name string) bool {
	return name == o.Name || name == o.Letter || o.Formerly(name)
}

// Formerly reports whether a name is a former spelling of the option.
func (o *Option) Formerly(name string) bool {
	return slices.Contains(strings.Fields(o.Former), name)
}

// TakesValue reports whether the option takes a value; otherwise it is a switch.
func (o *Option) TakesValue() bool { return o.Value != "" }

// Word returns the word for the value.
func (o *Option) Word() string {
	word, _, _ := strings.Cut(o.Value, " ")
	return word
}

// Example returns an example of the value.
func (o *Option) Example() string {
	_, example, found := strings.Cut(o.Value, " ")
	if !found {
		return o.Value
	}
	return example
}

// Names returns the long names of options.
func Names(all []*Option) (names []string) {
	for _, o := range all {
		names = append(names, o.Name)
	}
	return names
}
