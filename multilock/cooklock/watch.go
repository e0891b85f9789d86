package cooklock

import (
	"bytes"
	"sync"
	"time"

	"github.com/multilock/go/multilock/boottime"
)

// watch is a value that was seen in a register, and the moment since which it is
// watched: read after it was seen, never before.
type watch struct {
	value  []byte // nil: nobody has ever swapped
	number uint64
	since  boottime.Instant
}

// left is for how long the value is still to be watched. Nobody can be at work
// under a register that nobody has touched.
func (w watch) left(period time.Duration) time.Duration {
	if w.value == nil {
		return 0
	}
	return max(period-w.since.Awake(), 0)
}

func (w watch) holds(value []byte) bool {
	return bytes.Equal(w.value, value) && (w.value == nil) == (value == nil)
}

// memory is what this process watches, and remembers for later processes of this
// host. All contenders of a process share it: what one has watched, all have.
type memory struct {
	notes *notes // nil: nothing is remembered beyond this process

	mu      sync.Mutex
	watches map[string]watch
	failed  error // why nothing could be noted, the last time
}

func newMemory(n *notes) *memory { return &memory{notes: n, watches: map[string]watch{}} }

// saw is called with what a peek showed, after it returned at the moment at. If the
// value is the one that was watched before, it has been watched since then.
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

// wrote is called with a value that this process swapped in, after that returned
// at the moment at.
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

// trouble says why later processes of this host will not know what was watched.
func (m *memory) trouble() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.failed
}
