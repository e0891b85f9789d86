package fslock_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

func openLocks(t *testing.T, opt fslock.Options) *fslock.Source {
	t.Helper()
	s, err := fslock.Open(opt)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// oldDays puts a history of old days into a group, and other files beside it.
func oldDays(t *testing.T, s *fslock.Source) (dir string, old, others []string) {
	t.Helper()
	dir = filepath.Join(s.Base(), ".multilock", "groups", s.Group(), "history")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	day := func(ago int) string { return time.Now().UTC().AddDate(0, 0, -ago).Format(time.DateOnly) }
	old = []string{day(400) + ".here.00000000.jsonl", day(92) + ".node.with.dots.12345678.jsonl"}
	others = []string{day(2) + ".here.00000000.jsonl", day(89) + ".there.00000000.jsonl", "9999-01-01.x.y.jsonl", "2020-01-01.jsonl", "2020-01-01.x.jsonl",
		"2020-01-01..x.jsonl", "2020-01-01.x.y.txt", "2020-13-01.x.y.jsonl", "notes.of.an.administrator.jsonl"}
	for _, name := range slices.Concat(old, others) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("{}\n"), 0o600))
	}
	victim := filepath.Join(t.TempDir(), "victim")
	require.NoError(t, os.WriteFile(victim, nil, 0o600))
	require.NoError(t, os.Symlink(victim, filepath.Join(dir, "2020-01-01.a.link.jsonl")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "2020-01-01.a.directory.jsonl"), 0o755))
	others = append(others, "2020-01-01.a.link.jsonl", "2020-01-01.a.directory.jsonl")
	slices.Sort(old)
	slices.Sort(others)
	t.Cleanup(func() { require.FileExists(t, victim) })
	return dir, old, others
}

// Old days of the history are removed, whichever host wrote them; other files stay.
// Rule: history
func TestHistoryExpires(t *testing.T) {
	t.Parallel()
	s := openLocks(t, fslock.Options{Base: t.TempDir()})
	none, err := s.Expire(t.Context(), fslock.DefaultHistoryKeep)
	require.NoError(t, err)
	require.Empty(t, none, "there is none yet")
	dir, old, others := oldDays(t, s)
	before := namesIn(t, dir)
	names, err := s.Expired(t.Context(), fslock.DefaultHistoryKeep)
	require.NoError(t, err)
	require.Equal(t, old, names)
	require.Equal(t, before, namesIn(t, dir))
	names, err = s.Expire(t.Context(), fslock.DefaultHistoryKeep)
	require.NoError(t, err)
	require.Equal(t, old, names)
	require.Equal(t, others, namesIn(t, dir))
}

// The first event of a day shortens the history; later ones do not.
// Rule: history
func TestWhoBeginsADayShortensTheHistory(t *testing.T) {
	t.Parallel()
	for keep, shortened := range map[time.Duration]bool{0: true, -1: false, 24 * 365 * 10 * time.Hour: false} {
		s := openLocks(t, fslock.Options{Base: t.TempDir(), HistoryKeep: keep})
		dir, old, _ := oldDays(t, s)
		require.NoError(t, s.Append(t.Context(), source.Event{Time: time.Now(), What: source.EventBroke, Name: "x"}))
		for _, name := range old {
			require.Equal(t, shortened, !slices.Contains(namesIn(t, dir), name), "%s, %v", name, keep)
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, old[0]), nil, 0o600))
		require.NoError(t, s.Append(t.Context(), source.Event{Time: time.Now(), What: source.EventBroke, Name: "x"}))
		require.FileExists(t, filepath.Join(dir, old[0]))
	}
}
