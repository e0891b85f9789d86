// Package console is where a command meets its user: what it gets from outside, the words
// and numbers of its options, what it says and prints, and the exit code it ends with. It
// knows no command and no source.
package console

import (
	"encoding/json"
	"fmt"
	"os"

	"golang.org/x/term"
)

// Env is what a command gets from outside, and where it speaks.
type Env struct {
	Stdin, Stdout, Stderr *os.File
	Getenv                func(string) string
	Environ               func() []string

	messages messages // on their way to Stderr
}

// Output is what the user wants to be told, and how.
type Output struct{ JSON, Quiet, Verbose bool }

// Say prints a line of our own on the standard error, which keeps it apart from
// results and from a job's output. Names in it may be anybody's. It waits for nobody.
func (e *Env) Say(format string, args ...any) {
	e.Tell("multilock: " + Harmless(fmt.Sprintf(format, args...)) + "\n")
}

// Tell does the same with a text as it stands.
func (e *Env) Tell(text string) { e.messages.add(e.Stderr, text) }

// Show is for what will soon be shown anew. It is left out for a reader who has not read
// what came before.
func (e *Env) Show(text string) {
	if e.messages.pending() == nil {
		e.Tell(text)
	}
}

// PrintJSON prints one value as indented JSON on the standard output.
func (e *Env) PrintJSON(value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return e.Print("%s\n", Escaped(text))
}

// Print prints a result, after the messages that came before it.
func (e *Env) Print(format string, args ...any) error {
	e.messages.await(patienceAfter)
	if _, err := fmt.Fprintf(e.Stdout, format, args...); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return nil
}

// PrintLine prints one value as a line of JSON on the standard output.
func (e *Env) PrintLine(value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return e.Print("%s\n", Escaped(text))
}

// Await returns when all that was said so far has been written, or after a while: a job
// is to speak after us.
func (e *Env) Await() { e.messages.await(patienceBefore) }

// Flush returns when all that was said has been written, or nobody seems to read it.
func (e *Env) Flush() { e.messages.await(patienceAfter) }

// IsTerminal says whether a person may be looking.
func IsTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) } //nolint:gosec // a descriptor fits
