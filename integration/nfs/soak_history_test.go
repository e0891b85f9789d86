package nfs_test

import (
	"encoding/json"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/locktest"
)

// history gathers what all workers tell. They write into one pipe, each line with one
// call, before they go on with what it tells of: so the lines are in the order of what
// happened, none is torn, and as many as were read until now can be judged at any time.
type history struct {
	in   *os.File
	read sync.WaitGroup

	mu     sync.Mutex
	events []locktest.Event
	last   map[string]time.Duration // the last acquisition, by lock and by the worker's place
}

// newHistory keeps it in a file, too, which the lab hands out.
func newHistory(t testing.TB, path string) *history {
	t.Helper()
	out, in, err := os.Pipe()
	require.NoError(t, err)
	kept, err := os.Create(path)
	require.NoError(t, err)
	j := &history{in: in, last: map[string]time.Duration{}}
	j.read.Go(func() {
		defer out.Close()
		defer kept.Close()
		lines := json.NewDecoder(io.TeeReader(out, kept))
		for {
			var e locktest.Event
			if err := lines.Decode(&e); err == io.EOF {
				return
			} else if err != nil {
				t.Errorf("the history: %v", err)
				return
			}
			j.add(e)
		}
	})
	return j
}

func (j *history) add(e locktest.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, e)
	if e.Kind == locktest.Acquired {
		place, _, _ := strings.Cut(e.Proc, ".")
		j.last[e.Name], j.last[place] = e.Time, e.Time
	}
}

// all are the events so far.
func (j *history) all() []locktest.Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.events[:len(j.events):len(j.events)]
}

// late are those of the locks, or places, that had no acquisition since a moment.
func (j *history) late(those []string, since time.Duration) (late []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, name := range those {
		if j.last[name] < since {
			late = append(late, name)
		}
	}
	return late
}

// close waits until all is read that the workers, who have ended, have written.
func (j *history) close(t testing.TB) {
	t.Helper()
	require.NoError(t, j.in.Close())
	j.read.Wait()
}
