package cooklock

import (
	"bytes"
	"sync"
	"time"

	"github.com/multilock/go/multilock/boottime"
)

// watch is a value that was seen in a register, and the moment since which it is watched: read
// after it was seen, never before.
type watch struct {
	value  []byte // nil: there was no swap
	number uint64
	since  boottime.Instant
}

// left is for how long the value must still be watched. A register without a swap needs no watch,
// because no lock was acquired with it.
func (w watch) left(period time.Duration) time.Duration {
	if w.value == nil {
		return 0
	}
	return max(period-w.since.Awake(), 0)
}

func (w watch) holds(value []byte) bool {
	return bytes.Equal(w.value, value) && (w.value == nil) == (value == nil)
}

// memory stores this process's watches, also for later processes of this host. All contenders of a
// process share it.
type memory struct {
	notes *notes // nil: watches end with this process

	mu      sync.Mutex
	watches map[string]watch
	failed  error // why the last note could not be stored
}

func newMemory(n *notes) *memory { return &memory{notes: n, watches: map[string]watch{}} }

// saw records the result of a peek that returned at the moment at. If the value is the one that was
// watched before, that watch continues.
func (m *memory) saw(name string, value []byte, number uint64, at boottime.Instant) watch {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, known := m.watches[name]
	if !known && m.notes != nil {
		before, known = m.notes.load(name)
	}
	if known && before.holds(value) {
		m.watches[name] = before
		return before
	}
	return m.keep(name, watch{value: value, number: number, since: at})
}

// wrote records a value that this process swapped in, with a swap that returned at the moment at.
func (m *memory) wrote(name string, value []byte, number uint64, at boottime.Instant) watch {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.keep(name, watch{value: value, number: number, since: at})
}

func (m *memory) keep(name string, w watch) watch {
	m.watches[name] = w
	if m.notes != nil && w.value != nil {
		m.failed = m.notes.store(name, w)
	}
	return w
}

// trouble returns why later processes of this host cannot continue this process's watches.
func (m *memory) trouble() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.failed
}
