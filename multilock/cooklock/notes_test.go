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

// standstill is a clock whose reader stands still right after each reading, for
// long enough that it can be told.
func standstill() (time.Duration, bool) {
	read, ok := boottime.AwakeSinceBoot()
	for now := read; ok && now-read < 10*time.Millisecond; {
		now, ok = boottime.AwakeSinceBoot()
	}
	return read, ok
}

// A process that stands still while it writes a note, or reads one, makes nobody
// believe that the value was watched for longer than it was: whoever does would swap
// while somebody is at work.
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
