package console

import (
	"fmt"
	"io"
	"sync"
	"time"
)

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
