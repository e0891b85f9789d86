package fslock_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

// namesFrom returns the names of the events of a history, up to a number of them.
func namesFrom(t *testing.T, history func(yield func(source.Event, error) bool), most int) (names []string) {
	t.Helper()
	for e, err := range history {
		require.NoError(t, err)
		if names = append(names, e.Name); len(names) == most {
			break
		}
	}
	return names
}

// A history that is read from its end has the same events, whatever the lines and however they fall
// into pieces, with few descriptors.
// Rule: history
func TestLatestIsTheHistoryBackwards(t *testing.T) {
	src := historyOfManyHosts(t)
	f, err := os.OpenFile(fileOfHost(src, 50), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString("no event\n\n{\"time\":\"2026-01-01T12:00:00Z\",\"eve") // of a writer that crashed
	require.NoError(t, err)
	require.NoError(t, f.Close())
	forward := namesFrom(t, src.History(t.Context(), time.Time{}), -1)
	require.Len(t, forward, manyHosts*eventsOfEach+1)
	withFewDescriptors(t, 100)
	backward := namesFrom(t, src.Latest(t.Context(), time.Time{}), -1)
	slices.Reverse(backward)
	require.Equal(t, forward, backward)
	middle := time.Date(2026, 1, 1, 12, 0, 1500, 0, time.UTC)
	forward, backward = namesFrom(t, src.History(t.Context(), middle), -1), namesFrom(t, src.Latest(t.Context(), middle), -1)
	slices.Reverse(backward)
	require.Equal(t, forward, backward)
}

// The pieces of a file may begin and end anywhere in its lines.
// Rule: history
func TestLatestOfLinesOfAnyLength(t *testing.T) {
	for length := range 64 {
		src := open(t, fslock.Options{Base: fresh(t)})
		require.NoError(t, src.Append(t.Context(), eventAt(time.Now(), "ours")))
		var lines []byte
		for n := range 40 {
			e := eventAt(time.Date(2026, 1, 1, 12, 0, n, 0, time.UTC), fmt.Sprint(n))
			e.Command = strings.Repeat("x", 1700+length*(n%7))
			line, err := json.Marshal(e)
			require.NoError(t, err)
			lines = append(append(lines, line...), '\n')
		}
		if length%2 == 0 {
			lines = bytes.TrimSuffix(lines, []byte("\n"))
		}
		require.NoError(t, os.WriteFile(fileOfHost(src, 0), lines, 0o600))
		names := namesFrom(t, src.Latest(t.Context(), time.Time{}), -1)
		require.Len(t, names, 41)
		for n := range 40 {
			require.Equal(t, fmt.Sprint(39-n), names[n+1])
		}
	}
}

// The last events are told without reading what was before them.
// Rule: history
func TestLatestReadsOnlyTheEnd(t *testing.T) {
	src := open(t, fslock.Options{Base: fresh(t)})
	for n := range 20 {
		require.NoError(t, src.Append(t.Context(), eventAt(time.Now(), fmt.Sprint(n))))
	}
	files, err := os.ReadDir(historyDir(src.Base()))
	require.NoError(t, err)
	path := historyDir(src.Base()) + "/" + files[0].Name()
	lines, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append(bytes.Repeat([]byte("x"), 1<<20), lines...), 0o600)) // no line of a history is so long
	_, left := told(t, src)
	require.Len(t, left, 1)
	require.Equal(t, []string{"19", "18", "17"}, namesFrom(t, src.Latest(t.Context(), time.Time{}), 3))
}
