package main

import (
	"encoding/json"
	"fmt"
	"os"

	"golang.org/x/term"
)

// consoleEnv is what a command gets from outside, and where it speaks.
type consoleEnv struct {
	Stdin, Stdout, Stderr *os.File
	Getenv                func(string) string
	Environ               func() []string

	messages messages // on their way to Stderr
}

// say prints a line of our own on the standard error, which keeps it apart from
// results and from a job's output. Names in it may be anybody's. It waits for nobody.
func (e *consoleEnv) say(format string, args ...any) {
	e.tell("multilock: " + harmless(fmt.Sprintf(format, args...)) + "\n")
}

// tell does the same with a text as it stands.
func (e *consoleEnv) tell(text string) { e.messages.add(e.Stderr, text) }

// show is for what will soon be shown anew. It is left out for a reader who has not read
// what came before.
func (e *consoleEnv) show(text string) {
	if e.messages.pending() == nil {
		e.tell(text)
	}
}

// printJSON prints one value as indented JSON on the standard output.
func (e *consoleEnv) printJSON(value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return e.print("%s\n", escaped(text))
}

// print prints a result, after the messages that came before it.
func (e *consoleEnv) print(format string, args ...any) error {
	e.messages.await(patienceAfter)
	if _, err := fmt.Fprintf(e.Stdout, format, args...); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return nil
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) } //nolint:gosec // a descriptor fits

// printLine prints one value as a line of JSON on the standard output.
func (e *consoleEnv) printLine(value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return e.print("%s\n", escaped(text))
}

// await returns when all that was said so far has been written, or after a while: a job
// is to speak after us.
func (e *consoleEnv) await() { e.messages.await(patienceBefore) }

// close returns when all that was said has been written, or nobody seems to read it.
func (e *consoleEnv) close() { e.messages.await(patienceAfter) }
