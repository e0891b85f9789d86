package options

import (
	"flag"
	"fmt"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"
)

// Line is what is known of one command line.
type Line struct {
	// Spelling and Typed are how each option was spelled, and its value.
	Spelling, Typed map[string]string
	// Err is why a value was refused.
	Err error

	// Given are the values; a switch that was turned off has none.
	Given map[string]string
}

// NewLine returns that of a program to which nothing was said.
func NewLine() *Line {
	return &Line{Spelling: map[string]string{}, Typed: map[string]string{}, Given: map[string]string{}}
}

// Has says whether an option was given, and a switch turned on.
func (l *Line) Has(name string) bool {
	_, given := l.Given[name]
	return given
}

// Values are where the values of options go: pointers to a bool, a string, a pointer to one of
// them, which is nil without the option, or a Value.
type Values map[string]any

// Value reads what was typed.
type Value interface{ Set(text string) error }

// Reader is a Value that is no more than that.
type Reader func(text string) error

// Set reads the text.
func (r Reader) Set(text string) error { return r(text) }

// Flags returns the options of a command for the library.
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

// Flag is an option as the library sees it. It has one name there: argv.go replaces the others.
type Flag struct {
	*Option

	line *Line
	to   any
}

// Apply tells package flag of it.
func (f *Flag) Apply(set *flag.FlagSet) error {
	set.Var(f, f.Name, "")
	return nil
}

// Names is what the library looks it up by.
func (f *Flag) Names() []string { return []string{f.Name} }

// IsSet says whether it was given.
func (f *Flag) IsSet() bool { return f.line.Has(f.Name) }

// IsBoolFlag tells package flag that no value follows.
func (f *Flag) IsBoolFlag() bool { return !f.TakesValue() }

func (f *Flag) String() string { return "" }

// preset puts the default there.
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

// Set reads a value.
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

// ReadEnv sets, from their variables, the options that were not given. The common ones are left to
// package place, where configuration files count, too.
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
