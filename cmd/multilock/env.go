package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"
)

// env is what a command gets from outside.
type env struct {
	stdin, stdout, stderr *os.File
	getenv                func(string) string
	environ               func() []string
	kinds                 []sourceKind // of lock sources

	messages messages // on their way to stderr
}

// jobEnviron is what a job gets of our environment: all but what is secret. A job
// that uses the same source reads the password from the file that
// MULTILOCK_PASSWORD_FILE names.
func (e *env) jobEnviron() []string {
	var vars []string
	for _, entry := range e.environ() {
		switch name, value, _ := strings.Cut(entry, "="); name {
		case envPassword:
		case envSource:
			vars = append(vars, name+"="+publicURL(value))
		default:
			vars = append(vars, entry)
		}
	}
	return vars
}

// say prints a line of our own on the standard error, which keeps it apart from
// results and from a job's output. Names in it may be anybody's. It waits for nobody.
func (e *env) say(format string, args ...any) {
	e.tell("multilock: " + harmless(fmt.Sprintf(format, args...)) + "\n")
}

// tell does the same with a text as it stands.
func (e *env) tell(text string) { e.messages.add(e.stderr, text) }

// show is for what will soon be shown anew. It is left out for a reader who has not read
// what came before.
func (e *env) show(text string) {
	if e.messages.pending() == nil {
		e.tell(text)
	}
}

// printJSON prints one value as indented JSON on the standard output.
func (e *env) printJSON(value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return e.print("%s\n", escaped(text))
}

// print prints a result, after the messages that came before it.
func (e *env) print(format string, args ...any) error {
	e.messages.await(patienceAfter)
	if _, err := fmt.Fprintf(e.stdout, format, args...); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return nil
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) } //nolint:gosec // a descriptor fits

// printLine prints one value as a line of JSON on the standard output.
func (e *env) printLine(value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return e.print("%s\n", escaped(text))
}
