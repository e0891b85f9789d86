package worker

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/locktest"
)

// History collects the events of all workers. They write to one pipe, each line with one call, before
// they continue. So the lines are in the order of the events, no line is truncated, and the lines so far
// can be judged at any time.
type History struct {
	In   *os.File
	read sync.WaitGroup

	mu     sync.Mutex
	events []locktest.Event
}

// NewHistory makes a history that also writes its lines to kept.
func NewHistory(t testing.TB, kept io.Writer) *History {
	t.Helper()
	out, in, err := os.Pipe()
	require.NoError(t, err)
	h := &History{In: in}
	h.read.Go(func() {
		defer out.Close()
		lines := json.NewDecoder(io.TeeReader(out, kept))
		for {
			var e locktest.Event
			if err := lines.Decode(&e); errors.Is(err, io.EOF) {
				return
			} else if err != nil {
				t.Errorf("the history: %v", err)
				return
			}
			h.add(e)
		}
	})
	return h
}

func (h *History) add(e locktest.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
}

// All returns the events so far.
func (h *History) All() []locktest.Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.events[:len(h.events):len(h.events)]
}

// Close waits until all output of the workers was read. They must have ended.
func (h *History) Close(t testing.TB) {
	t.Helper()
	require.NoError(t, h.In.Close())
	h.read.Wait()
}
