package clitest

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"
)

// Output collects what a command writes, for looking at meanwhile.
type Output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

// NewOutput returns one that is empty.
func NewOutput() *Output { return &Output{changed: make(chan struct{}, 1)} }

// Write takes what the command wrote.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case o.changed <- struct{}{}:
	default:
	}
	return o.text.Write(p)
}

// String is all that was written so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Expect waits for a text.
func (o *Output) Expect(t testing.TB, text string) {
	t.Helper()
	deadline := time.After(Watchdog)
	for !strings.Contains(o.String(), text) {
		select {
		case <-o.changed:
		case <-deadline:
			t.Fatalf("%q does not appear, but %q", text, o.String())
		}
	}
}

// Take waits for a text, and returns and forgets all up to it.
func (o *Output) Take(t testing.TB, text string) string {
	t.Helper()
	o.Expect(t, text)
	o.mu.Lock()
	defer o.mu.Unlock()
	before, _, _ := strings.Cut(o.text.String(), text)
	o.text.Next(len(before) + len(text))
	return before
}
