package cooklock

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/process"
)

// standstill is a clock whose reader is stopped right after each reading, for a noticeable time.
func standstill() (time.Duration, bool) {
	read, ok := boottime.AwakeSinceBoot()
	for now := read; ok && now-read < 10*time.Millisecond; {
		now, ok = boottime.AwakeSinceBoot()
	}
	return read, ok
}

// If a process is stopped while it writes or reads a note, the watch does not become longer than it
// was: otherwise a process would swap while another one holds the lock.
func TestNoteIsNeverTooOld(t *testing.T) {
	if _, ok := boottime.AwakeSinceBoot(); !ok {
		t.Skip("there is no clock that processes share")
	}
	n := newNotes(filepath.Join(t.TempDir(), "notes"), "here", process.Identity{Boot: "this one"})
	n.clock = standstill
	before, _ := boottime.AwakeSinceBoot()
	seen := boottime.Now()
	require.NoError(t, n.store("oven", watch{value: []byte("v"), number: 1, since: seen}))

	data, err := os.ReadFile(n.path("oven"))
	require.NoError(t, err)
	var written note
	require.NoError(t, json.Unmarshal(data, &written))
	require.GreaterOrEqual(t, written.Awake, before.Nanoseconds(), "the note says that the value was seen before it was")

	found, ok := n.load("oven")
	require.True(t, ok)
	require.LessOrEqual(t, found.since.Awake(), seen.Awake())
}
