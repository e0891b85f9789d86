//go:build linux

package vm

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"sync"
)

// consoleLimit is the number of bytes that a Console keeps.
const consoleLimit = 64 << 10

// Console keeps the last output of the kernel and the emulator.
type Console struct {
	mu    sync.Mutex
	bytes bytes.Buffer
	also  io.Writer
}

func newConsole(also io.Writer) *Console {
	if also == nil {
		also = io.Discard
	}
	return &Console{also: also}
}

// Write never fails: a closed terminal must not stop the machine.
func (c *Console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes.Write(p)
	if surplus := c.bytes.Len() - consoleLimit; surplus > 0 {
		c.bytes.Next(surplus)
	}
	_, _ = c.also.Write(p)
	return len(p), nil
}

// Tail returns the last lines, at most n, without terminal control codes.
func (c *Console) Tail(n int) string {
	c.mu.Lock()
	text := c.bytes.String()
	c.mu.Unlock()
	text = regexp.MustCompile("\x1b(\\[[0-9;?=]*[a-zA-Z]|c)|\r").ReplaceAllString(text, "")
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
