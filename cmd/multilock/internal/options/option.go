// Package options has the options of all commands as data: one table of what each is called, which
// values it takes and what it is for, and one of the relations between them. Flags, checks, help,
// completions and manual pages come from these.
package options

import (
	"slices"
	"strings"
)

// The categories, which are the headings of the help.
const (
	basics   = "BASICS"
	schedule = "SCHEDULE"
	limits   = "LIMITS"
	output   = "OUTPUT"
	hooks    = "HOOKS"
	advanced = "ADVANCED"
)

// Program is the For of options that stand before a command.
const Program = "multilock"

// Option is a row of the table.
type Option struct {
	Name, Letter string
	Former       string // spellings that go on working and are shown nowhere
	Common       bool   // may stand before the command, and is accepted by all
	For          string // the commands that show it, with ! if -h does; * are all that open a source
	In           string // its category
	Value        string // the word for its value and an example; "" is a switch
	Words        string // values to propose; the only ones if the value is a string
	Default      string // the value if none is given
	Else         string // says what happens without the option
	Range        string // of a number, as 1..1000 or 1..
	Zero         string // why zero is refused
	// Filled refuses an empty value, as common options do. It comes from a shell variable that was never
	// set, and a default in its place would mean something else, such as another lock.
	Filled bool
	Env    string // a variable that stands for it
	Help   string // -h shows what is before the first semicolon
}

// Of returns the options that a command shows, in the order of its help.
func Of(command string) []*Option {
	return filter(func(o *Option) bool { return o.shown(command) != "" })
}

// Accepted returns the options that a command can be given, its own first.
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

// shown returns the mark of a command in For, without the mark "!" if -h leaves the option out, and
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

// Find returns the option of a command that has this name, letter or former spelling.
func Find(command, name string) *Option {
	all := Accepted(command)
	if i := slices.IndexFunc(all, func(o *Option) bool { return name != "" && o.Called(name) }); i >= 0 {
		return all[i]
	}
	return nil
}

// Called says whether an option has this name, letter or former spelling.
func (o *Option) Called(name string) bool {
	return name == o.Name || name == o.Letter || o.Formerly(name)
}

// Formerly says whether a name is a former spelling of the option.
func (o *Option) Formerly(name string) bool {
	return slices.Contains(strings.Fields(o.Former), name)
}

// TakesValue says whether the option is not a switch.
func (o *Option) TakesValue() bool { return o.Value != "" }

// Word is the word for the value.
func (o *Option) Word() string {
	word, _, _ := strings.Cut(o.Value, " ")
	return word
}

// Example is a value.
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
