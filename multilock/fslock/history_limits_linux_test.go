package fslock_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

// chronicle is a source with one event in its history, and a file beside it that another program has put
// there.
func chronicle(t *testing.T, put func(path string) error) *fslock.Source {
	t.Helper()
	src := open(t, fslock.Options{Base: fresh(t)})
	require.NoError(t, src.Append(t.Context(), eventAt(time.Now(), "ours")))
	require.NoError(t, put(filepath.Join(historyDir(src.Base()), time.Now().UTC().Format(time.DateOnly)+".evil.0.jsonl")))
	return src
}

// told reads a history, and the parts that are left out.
func told(t *testing.T, src *fslock.Source) (names, left []string) {
	t.Helper()
	for e, err := range src.History(t.Context(), time.Time{}) {
		var out *source.LeftOutError
		if errors.As(err, &out) {
			left = append(left, out.Error())
			continue
		}
		require.NoError(t, err)
		names = append(names, e.Name)
	}
	return names, left
}

// followed reads the next events of a history, and the parts that are left out.
func followed(t *testing.T, f source.Follower) (names, left []string) {
	t.Helper()
	for {
		events, err := f.Next(t.Context())
		var out *source.LeftOutError
		if errors.As(err, &out) {
			left = append(left, out.Error())
			continue
		}
		require.NoError(t, err)
		if len(events) == 0 {
			return names, left
		}
		for _, e := range events {
			names = append(names, e.Name)
		}
	}
}

// An entry among a history's files that is not a file, or may not be read, is reported once; the others are
// read.
// Rule: history
func TestFileOfAHistoryIsLeftOut(t *testing.T) {
	for what, c := range map[string]struct {
		put func(path string) error
		why string
	}{
		"a line without an end": {func(path string) error { return errors.Join(writing("")(path), os.Truncate(path, 10<<30)) }, "no line of a history"},
		"a symbolic link":       {func(path string) error { return os.Symlink("/dev/zero", path) }, ""},
		"a directory":           {func(path string) error { return os.Mkdir(path, 0o777) }, ""},
	} {
		t.Run(what, func(t *testing.T) {
			src := chronicle(t, c.put)
			f := src.Follow(time.Time{})
			defer f.Close()
			requireLeftOut := func(names, left []string) {
				require.Equal(t, []string{"ours"}, names)
				require.Len(t, left, 1)
				require.Contains(t, left[0], ".evil.0.jsonl is left out")
				require.Contains(t, left[0], c.why)
			}
			requireLeftOut(told(t, src))
			requireLeftOut(followed(t, f))
			require.NoError(t, src.Append(t.Context(), eventAt(time.Now(), "later")))
			names, left := followed(t, f)
			require.Equal(t, []string{"later"}, names)
			require.Empty(t, left, "it was named")
		})
	}
}

// A history file with several names in its directory is read once, and the further names are reported. A
// name in another directory, such as a backup's, changes nothing.
// Rule: history
func TestHardLinksInAHistoryAreReadOnce(t *testing.T) {
	src := open(t, fslock.Options{Base: fresh(t)})
	require.NoError(t, src.Append(t.Context(), eventAt(time.Now(), "ours")))
	files, err := filepath.Glob(filepath.Join(historyDir(src.Base()), "*.jsonl"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.NoError(t, os.Link(files[0], filepath.Join(t.TempDir(), "backup")))
	names, left := told(t, src)
	require.Equal(t, []string{"ours"}, names)
	require.Empty(t, left)

	const further = 40
	for n := range further {
		day := time.Now().UTC().AddDate(0, 0, n%2).Format(time.DateOnly)
		require.NoError(t, os.Link(files[0], filepath.Join(historyDir(src.Base()), fmt.Sprintf("%s.zz%d.0.jsonl", day, n))))
	}
	f := src.Follow(time.Time{})
	defer f.Close()
	requireOnce := func(names, left []string) {
		require.Equal(t, []string{"ours"}, names)
		require.Len(t, left, further)
		for _, why := range left {
			require.Regexp(t, `\.zz\d+\.0\.jsonl is left out: it is the same file as .*hard link`, why)
		}
	}
	requireOnce(told(t, src))
	requireOnce(followed(t, f))
}

// A private file only hides its own events.
// Rule: history
func TestPrivateFileOfAHistory(t *testing.T) {
	requireRoot(t, "another user")
	src := chronicle(t, func(path string) error { return os.WriteFile(path, nil, 0o600) })
	for path := historyDir(src.Base()); path != filepath.Dir(src.Base()); path = filepath.Dir(path) {
		require.NoError(t, os.Chmod(path, 0o755))
	}
	reader := newNeighbour(t, setting{UID: 1234}, order{Base: src.Base()})
	a := reader.must(t, order{Do: "history"})
	require.Equal(t, []string{"ours"}, a.Is)
	require.Contains(t, a.Why, ".evil.0.jsonl is left out")
	require.Contains(t, a.Why, "permission denied")
}

// However long a history is, it is read a piece at a time.
// Rule: history
func TestLongHistoryTakesLittleMemory(t *testing.T) {
	src := open(t, fslock.Options{Base: fresh(t)})
	events := make([]source.Event, 1000)
	for i := range events {
		events[i] = eventAt(time.Now(), fmt.Sprint(i))
		events[i].Command = strings.Repeat("x", 4<<10)
	}
	for range 20 {
		require.NoError(t, src.Record(t.Context(), events))
	}
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	count, most := 0, uint64(0)
	for _, err := range src.History(t.Context(), time.Time{}) {
		require.NoError(t, err)
		if count++; count%5000 == 0 {
			runtime.GC()
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapAlloc)
		}
	}
	require.Equal(t, 20*len(events), count)
	require.Less(t, most, before.HeapAlloc+16<<20, "of 80 MiB")
}

// A history of hundreds of hosts and days is read without keeping all its files open.
// Rule: history
func TestHistoryOfManyDaysOpensFewFiles(t *testing.T) {
	src := open(t, fslock.Options{Base: fresh(t)})
	var events []source.Event
	for i := range 300 {
		events = append(events, eventAt(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).AddDate(0, 0, i), fmt.Sprint(i)))
	}
	require.NoError(t, src.Record(t.Context(), events))
	var limit, few syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	few = limit
	few.Cur = 100
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few))
	names, left := told(t, src)
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	require.Empty(t, left)
	require.Len(t, names, len(events))
	require.Equal(t, "299", names[299])
}

const manyHosts, eventsOfEach = 300, 10

// historyOfManyHosts is a history of a day on which hundreds of hosts wrote, and of one event today. Some
// of its files are longer than a piece.
func historyOfManyHosts(t *testing.T) *fslock.Source {
	t.Helper()
	src := open(t, fslock.Options{Base: fresh(t)})
	require.NoError(t, src.Append(t.Context(), eventAt(time.Now(), "ours")))
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for host := range manyHosts {
		var lines []byte
		for n := range eventsOfEach {
			e := eventAt(start.Add(time.Duration(n*manyHosts+host)*time.Second), fmt.Sprint(n*manyHosts+host))
			if host%50 == 0 {
				e.Command = strings.Repeat("x", 4<<10)
			}
			line, err := json.Marshal(e)
			require.NoError(t, err)
			lines = append(append(lines, line...), '\n')
		}
		require.NoError(t, os.WriteFile(fileOfHost(src, host), lines, 0o600))
	}
	return src
}

func fileOfHost(src *fslock.Source, host int) string {
	return filepath.Join(historyDir(src.Base()), fmt.Sprintf("2026-01-01.h%d.0.jsonl", host))
}

// withFewDescriptors limits this process's open files until the test ends.
func withFewDescriptors(t *testing.T, most uint64) {
	t.Helper()
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	few := limit
	few.Cur = most
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few))
	t.Cleanup(func() { require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)) })
}

// A day on which hundreds of hosts wrote is read in order with few descriptors.
// Rule: history
func TestHistoryOfManyHostsOpensFewFiles(t *testing.T) {
	src := historyOfManyHosts(t)
	withFewDescriptors(t, 200)
	names, left := told(t, src)
	require.Empty(t, left)
	require.Len(t, names, manyHosts*eventsOfEach+1)
	for n, name := range names[:manyHosts*eventsOfEach] {
		require.Equal(t, fmt.Sprint(n), name)
	}
}

// The same day is followed with few descriptors, and added events are read.
// Rule: history
func TestFollowingManyHostsOpensFewFiles(t *testing.T) {
	src := historyOfManyHosts(t)
	withFewDescriptors(t, 200)
	f := src.Follow(time.Time{})
	defer f.Close()
	names, left := followed(t, f)
	require.Empty(t, left)
	require.Len(t, names, manyHosts*eventsOfEach+1)
	added := func(name string) []byte {
		line, err := json.Marshal(eventAt(time.Now(), name))
		require.NoError(t, err)
		return append(line, '\n')
	}
	later, err := os.OpenFile(fileOfHost(src, 7), os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	line := added("in two parts")
	_, err = later.Write(line[:20])
	require.NoError(t, err)
	names, left = followed(t, f)
	require.Empty(t, append(names, left...))
	_, err = later.Write(line[20:])
	require.NoError(t, errors.Join(err, later.Close()))
	require.NoError(t, src.Append(t.Context(), eventAt(time.Now(), "today")))
	require.NoError(t, os.Remove(fileOfHost(src, 8)))
	require.NoError(t, os.WriteFile(fileOfHost(src, 8), added("from the beginning"), 0o600))
	require.NoError(t, os.Remove(fileOfHost(src, 9)))
	names, left = followed(t, f)
	require.Empty(t, left)
	require.ElementsMatch(t, []string{"in two parts", "today", "from the beginning"}, names)
}
