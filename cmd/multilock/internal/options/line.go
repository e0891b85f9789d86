package options

import (
	"flag"
	"fmt"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"
)

// Line is the state of one parsed command line.
type Line struct {
	// Spelling and Typed are the spelling and the value of each option as typed.
	Spelling, Typed map[string]string
	// Own are the options that only this command has, in their long form.
	Own []string
	// Err is why a value was rejected.
	Err error

	// Given are the values; a switch that was turned off has no value.
	Given map[string]string
}

// NewLine returns an empty command line.
func NewLine() *Line {
	return &Line{Spelling: map[string]string{}, Typed: map[string]string{}, Given: map[string]string{}}
}

// Has reports whether an option was given, and a switch turned on.
func (l *Line) Has(name string) bool {
	_, given := l.Given[name]
	return given
}

// Values are the destinations of option values: pointers to a bool, a string, or a pointer to one
// of them, which is nil without the option; or a Value.
type Values map[string]any

// Value parses an option's value.
type Value interface{ Set(text string) error }

// Reader is a function as a Value.
type Reader func(text string) error

// Set parses the text.
func (r Reader) Set(text string) error { return r(text) }

// Flags returns the options of a command for the cli library.
func Flags(l *Line, command string, values Values) (flags []cli.Flag) {
	for _, o := range Accepted(command) {
		to, known := values[o.Name]
		if !known {
			panic(command + ": no place for the value of --" + o.Name)
		}
		f := &Flag{Option: o, line: l, to: to}
		f.preset()
		flags = append(flags, f)
	}
	if len(values) > len(flags) {
		panic(command + ": a value of no option")
	}
	return flags
}

// Flag is an option for the cli library, with one name: argv.go replaces the other spellings.
type Flag struct {
	*Option

	line *Line
	to   any
}

// Apply adds the option to a flag set.
func (f *Flag) Apply(set *flag.FlagSet) error {
	set.Var(f, f.Name, "")
	return nil
}

// Names returns the name by which the library finds the option.
func (f *Flag) Names() []string { return []string{f.Name} }

// IsSet reports whether the option was given.
func (f *Flag) IsSet() bool { return f.line.Has(f.Name) }

// IsBoolFlag makes package flag accept the option without a value.
func (f *Flag) IsBoolFlag() bool { return !f.TakesValue() }

func (f *Flag) String() string { return "" }

// preset sets the default.
func (f *Flag) preset() {
	switch to := f.to.(type) {
	case *bool:
		*to = f.Default == "true"
	case *string:
		*to = f.Default
	case interface{ Preset(text string) }:
		if f.Default != "" {
			to.Preset(f.Default)
		}
	}
}

// Set parses a value.
func (f *Flag) Set(text string) error {
	f.line.Given[f.Name] = text
	if !f.TakesValue() && text != "true" {
		if on, err := strconv.ParseBool(text); err == nil && !on {
			delete(f.line.Given, f.Name)
		}
	}
	spelled := f.line.Spelling[f.Name]
	if err := f.put(text); err != nil {
		f.line.Err = fmt.Errorf("%s: %w", spelled, err)
	}
	return f.line.Err
}

func (f *Flag) put(text string) (err error) {
	on := false
	if !f.TakesValue() {
		if on, err = strconv.ParseBool(text); err != nil {
			return fmt.Errorf("%q is neither true nor false", text)
		}
	}
	switch to := f.to.(type) {
	case *bool:
		*to = on
	case **bool:
		*to = &on
	case *string:
		if *to = text; f.Words != "" && !contains(f.Words, text) {
			return fmt.Errorf("%q: choose %s", text, oneOf(strings.Fields(f.Words)))
		}
	case **string:
		*to = &text
	case Value:
		return to.Set(text)
	}
	return nil
}

// ReadEnv sets the options that were not given from their variables. Package place handles the common
// options, which configuration files can set, too.
func ReadEnv(flags []cli.Flag, getenv func(string) string) error {
	for _, each := range flags {
		f, ok := each.(*Flag)
		if !ok || f.Env == "" || f.Common || f.IsSet() {
			continue
		}
		if _, given := f.line.Spelling[f.Name]; given {
			continue // turned off
		}
		if text := getenv(f.Env); text != "" {
			f.line.Given[f.Name] = text
			if err := f.put(text); err != nil {
				return fmt.Errorf("%s=%q: write 1 or 0", f.Env, text)
			}
		}
	}
	return nil
}
