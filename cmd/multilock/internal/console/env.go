// Package console is the interface between a command and its user: environment, standard streams,
// formats of option values, messages and exit codes. It depends on no command and no source.
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

// Env is a command's environment and its standard streams.
type Env struct {
	Program               string // the name by which it was called
	Stdin, Stdout, Stderr *os.File
	Getenv                func(string) string
	Environ               func() []string

	// SpeakJSON writes messages as JSON, one object per line.
	SpeakJSON bool

	messages messages
	speaker  *os.File // where messages go; Stderr if nil
}

// NewEnv returns the Env of this process with the given variables.
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

// Output is how much the user wants to see, and in which format.
type Output struct{ JSON, Quiet, Verbose bool }

// Say prints a line on the standard error, which keeps it apart from results and from the job's
// output. Names in it may come from other users. It never blocks.
func (e *Env) Say(format string, args ...any) {
	if e.SpeakJSON {
		e.SayObject(messageOf(fmt.Sprintf(format, args...)))
		return
	}
	e.Tell("multilock: " + Line(fmt.Sprintf(format, args...)) + "\n")
}

// Tell prints a text without changes. It never blocks.
func (e *Env) Tell(text string) { e.messages.add(cmp.Or(e.speaker, e.Stderr), text) }

// Show prints a text that the next Show will replace. It drops the text if the reader has not read
// earlier messages.
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

// Print prints a result, after earlier messages. The result may come from other users, so Print
// replaces characters that are not printable.
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

// Await returns when all messages so far have been written, or after a short timeout. It is called
// before a job starts, so that the job's output comes later.
func (e *Env) Await() { e.messages.await(patienceBefore) }

// Flush returns when all messages have been written, or when no process seems to read them.
func (e *Env) Flush() { e.messages.await(patienceAfter) }

// IsTerminal reports whether f is a terminal.
func IsTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) } //nolint:gosec // a descriptor fits

// messages are written to the standard error for people. A reader that does not read (a full pipe, a
// stopped terminal) blocks the writer, and nothing that ends a job, releases a lock or handles a signal
// may wait for that. So a goroutine writes them in the background, in order, and runs only while there
// is something to write.
type messages struct {
	mu      sync.Mutex
	waiting []byte
	missed  int           // messages dropped for lack of room
	written chan struct{} // closed when all is written; nil if nothing is pending
	waited  time.Duration // total time spent waiting for it without success
}

const (
	// maxWaiting limits what is buffered for a reader that does not read.
	maxWaiting = 1 << 20
	// patienceBefore is how long the start of a job waits for a reader that does not read, and
	// patienceAfter how long the end of the program does.
	patienceBefore = 100 * time.Millisecond
	patienceAfter  = time.Second
)

// add queues a text. It never blocks.
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
		_, _ = to.Write(text) // there is no way to report an error here
	}
}

// take returns the text to write next, nil if there is nothing.
func (m *messages) take() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	text := m.waiting
	if m.missed > 0 {
		text = fmt.Appendf(text, "multilock: %d messages are missing here, because they were not read in time\n", m.missed)
	}
	m.waiting, m.missed = nil, 0
	if len(text) == 0 {
		close(m.written)
		m.written = nil
		return nil
	}
	return text
}

// pending returns a channel that is closed when all texts have been written; nil if nothing is pending.
func (m *messages) pending() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.written
}

// await returns when all texts have been written, or when patience runs out. It spends that time only
// once for a reader that does not read.
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
