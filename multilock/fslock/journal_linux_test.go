package fslock_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

func historyDir(base string) string {
	return filepath.Join(base, ".multilock", "groups", fslock.DefaultGroup, "history")
}

// follow reads to the end of what there is.
func follow(t *testing.T, f source.Follower) []string {
	t.Helper()
	names := []string{}
	for {
		events, err := f.Next(t.Context())
		require.NoError(t, err)
		if len(events) == 0 {
			return names
		}
		for _, e := range events {
			names = append(names, e.Name)
		}
	}
}

func TestFollowReadsWhatIsNew(t *testing.T) {
	base := t.TempDir()
	here, there := open(t, fslock.Options{Base: base}), open(t, fslock.Options{Base: base, Self: elsewhere(t)})
	now := time.Now()
	f := here.Follow(now.Add(-time.Hour))
	defer f.Close()
	require.Empty(t, follow(t, f), "there is no history yet")

	require.NoError(t, there.Record(t.Context(), []source.Event{eventAt(now, "a"), eventAt(now, "b")}))
	require.NoError(t, here.Record(t.Context(), []source.Event{eventAt(now.Add(-2*time.Hour), "too old")}))
	require.Equal(t, []string{"a", "b"}, follow(t, f))
	require.Empty(t, follow(t, f))

	require.NoError(t, here.Append(t.Context(), eventAt(now, "c")))
	require.NoError(t, there.Append(t.Context(), eventAt(now, "d")))
	require.ElementsMatch(t, []string{"c", "d"}, follow(t, f))
	require.Empty(t, follow(t, f))
}

// Events of several days go to the files of those days, and are found there.
func TestRecordOfSeveralDays(t *testing.T) {
	src := open(t, fslock.Options{Base: t.TempDir()})
	now := time.Now()
	var events []source.Event
	for days := range 3 {
		events = append(events, eventAt(now.AddDate(0, 0, -days), fmt.Sprint(days)), eventAt(now.AddDate(0, 0, -days), fmt.Sprint(days)))
	}
	require.NoError(t, src.Record(t.Context(), events))
	require.Len(t, namesIn(t, historyDir(src.Base())), 3)
	all, err := src.History(t.Context(), now.AddDate(0, 0, -3))
	require.NoError(t, err)
	require.Len(t, all, 6)
	f := src.Follow(now.Add(-time.Hour))
	defer f.Close()
	require.Equal(t, []string{"0", "0"}, follow(t, f))
}

// A line is read when it has an end, and what is no event is passed over.
func TestFollowPassesOverWhatIsTorn(t *testing.T) {
	src := open(t, fslock.Options{Base: t.TempDir()})
	require.NoError(t, src.Append(t.Context(), eventAt(time.Now(), "a")))
	file := filepath.Join(historyDir(src.Base()), namesIn(t, historyDir(src.Base()))[0])
	line, err := os.ReadFile(file)
	require.NoError(t, err)
	f := src.Follow(time.Time{})
	defer f.Close()
	require.Equal(t, []string{"a"}, follow(t, f))

	add := func(data []byte) {
		t.Helper()
		w, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = w.Write(data)
		require.NoError(t, err)
		require.NoError(t, w.Close())
	}
	add(line[:len(line)-1])
	require.Empty(t, follow(t, f))
	all, err := src.History(t.Context(), time.Time{})
	require.NoError(t, err)
	require.Len(t, all, 2, "only its end is missing")
	add(line[len(line)-1:])
	require.Equal(t, []string{"a"}, follow(t, f))
	add(append([]byte("{\"torn\n\x00\x00\n"), line...))
	require.Equal(t, []string{"a"}, follow(t, f))
}

// A large history is read in parts, and none of it is lost between them.
func TestFollowLargeHistory(t *testing.T) {
	src := open(t, fslock.Options{Base: t.TempDir()})
	var events []source.Event
	for i := range 5000 {
		events = append(events, eventAt(time.Now(), fmt.Sprint(i)))
	}
	require.NoError(t, src.Record(t.Context(), events))
	f := src.Follow(time.Time{})
	defer f.Close()
	first, err := f.Next(t.Context())
	require.NoError(t, err)
	require.Less(t, len(first), len(events))
	rest := follow(t, f)
	require.Equal(t, len(events), len(first)+len(rest))
	require.Equal(t, "4999", rest[len(rest)-1])
}

// The history is in the order of time, whichever hosts wrote it. Nothing is written for
// no event.
func TestHistoryIsInTheOrderOfTime(t *testing.T) {
	base := t.TempDir()
	hosts := []*fslock.Source{open(t, fslock.Options{Base: base}), open(t, fslock.Options{Base: base, Self: elsewhere(t)})}
	require.NoError(t, hosts[0].Record(t.Context(), nil))
	require.Empty(t, namesIn(t, base))
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for i := range 6 {
		require.NoError(t, hosts[i%2].Append(t.Context(), eventAt(noon.Add(time.Duration(i)*time.Minute), fmt.Sprint(i))))
	}
	events, err := hosts[0].History(t.Context(), time.Time{})
	require.NoError(t, err)
	require.Len(t, events, 6)
	for i, e := range events {
		require.Equal(t, fmt.Sprint(i), e.Name)
	}
}
