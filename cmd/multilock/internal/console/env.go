// Package console is where a command meets its user: what it gets from outside, the words
// and numbers of its options, what it says and prints, and the exit code it ends with. It
// knows no command and no source.
package console

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// Env is what a command gets from outside, and where it speaks.
type Env struct {
	Program               string // by which name it was called
	Stdin, Stdout, Stderr *os.File
	Getenv                func(string) string
	Environ               func() []string

	// SpeakJSON has messages written as JSON, an object a line.
	SpeakJSON bool

	messages messages
	speaker  *os.File // where messages go; nil is Stderr
}

// NewEnv is that of this process, with these variables.
func NewEnv(environ []string) *Env {
	return &Env{
		Program: filepath.Base(os.Args[0]), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Getenv: func(name string) string {
			for _, entry := range environ {
				if value, found := strings.CutPrefix(entry, name+"="); found {
					return value
				}
			}
			return ""
		},
		Environ: func() []string { return slices.Clone(environ) },
	}
}

// Output is what the user wants to be told, and how.
type Output struct{ JSON, Quiet, Verbose bool }

// Say prints a line of our own on the standard error, which keeps it apart from
// results and from a job's output. Names in it may be anybody's. It waits for nobody.
func (e *Env) Say(format string, args ...any) {
	if e.SpeakJSON {
		e.SayObject(messageOf(fmt.Sprintf(format, args...)))
		return
	}
	e.Tell("multilock: " + Line(fmt.Sprintf(format, args...)) + "\n")
}

// Tell does the same with a text as it stands.
func (e *Env) Tell(text string) { e.messages.add(cmp.Or(e.speaker, e.Stderr), text) }

// Show is for what will soon be shown anew. It is left out for a reader who has not read
// what came before.
func (e *Env) Show(text string) {
	if e.messages.pending() == nil {
		e.Tell(text)
	}
}

// PrintJSON prints one value as indented JSON on the standard output.
func (e *Env) PrintJSON(value any) error {
	text, err := Lossless(value, "  ")
	if err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return e.Print("%s\n", Escaped(Stamped(text)))
}

// Print prints a result, after the messages that came before it. What is in it may be
// anybody's: nothing gets out but lines of what can be printed.
func (e *Env) Print(format string, args ...any) error {
	return e.print(lines(fmt.Sprintf(format, args...)))
}

func (e *Env) print(text string) error {
	e.messages.await(patienceAfter)
	if _, err := io.WriteString(e.Stdout, text); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return nil
}

// PrintLine prints one value as a line of JSON on the standard output.
func (e *Env) PrintLine(value any) error {
	text, err := Lossless(value, "")
	if err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return e.Print("%s\n", Escaped(Stamped(text)))
}

// Await returns when all that was said so far has been written, or after a while: a job
// is to speak after us.
func (e *Env) Await() { e.messages.await(patienceBefore) }

// Flush returns when all that was said has been written, or nobody seems to read it.
func (e *Env) Flush() { e.messages.await(patienceAfter) }

// IsTerminal says whether a person may be looking.
func IsTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) } //nolint:gosec // a descriptor fits

// messages are on their way to people, on the standard error. A reader who does not read
// (a full pipe, a terminal that was stopped) holds up whoever writes to him, and nothing
// that ends a job, releases a lock or obeys a signal may wait for that. So they are
// written in the background, in their order, by a goroutine that is there as long as
// there is something to write.
type messages struct {
	mu      sync.Mutex
	waiting []byte
	missed  int           // messages that there was no room for
	written chan struct{} // closed when nothing is left to be written; nil if that is so
	waited  time.Duration // for that, in vain
}

const (
	// maxWaiting bounds what is kept for a reader who does not read.
	maxWaiting = 1 << 20
	// patienceBefore is how long a job is not started, so that it speaks after us, and
	// patienceAfter how long the program does not end, for a reader who does not read.
	patienceBefore = 100 * time.Millisecond
	patienceAfter  = time.Second
)

// add has a text written. It never waits.
func (m *messages) add(to io.Writer, text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.waiting)+len(text) > maxWaiting {
		m.missed++
		return
	}
	m.waiting = append(m.waiting, text...)
	if m.written == nil {
		m.written, m.waited = make(chan struct{}), 0
		go m.write(to)
	}
}

func (m *messages) write(to io.Writer) {
	for text := m.take(); text != nil; text = m.take() {
		_, _ = to.Write(text) // nobody is left to tell
	}
}

// take returns what is to be written next, nil if that is nothing.
func (m *messages) take() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	text := m.waiting
	if m.missed > 0 {
		text = fmt.Appendf(text, "multilock: %d messages are missing here: nobody read them\n", m.missed)
	}
	m.waiting, m.missed = nil, 0
	if len(text) == 0 {
		close(m.written)
		m.written = nil
		return nil
	}
	return text
}

// pending is closed when all that was added has been written; nil if that is so.
func (m *messages) pending() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.written
}

// await returns when all that was added has been written, or patience is at its end:
// for each reader who does not read it is spent once.
func (m *messages) await(patience time.Duration) {
	m.mu.Lock()
	pending, left := m.written, patience-m.waited
	m.mu.Unlock()
	if pending == nil || left <= 0 {
		return
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-pending:
	case <-timer.C:
		m.mu.Lock()
		defer m.mu.Unlock()
		m.waited = max(m.waited, patience)
	}
}
