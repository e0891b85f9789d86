package fslock_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

// writable is a base with a directory in it, for files that others may have written.
func writable(f *testing.F, below ...string) (src *fslock.Source, dir string) {
	f.Helper()
	src = open(f, fslock.Options{Base: f.TempDir()})
	dir = filepath.Join(append([]string{src.Base()}, below...)...)
	require.NoError(f, os.MkdirAll(dir, 0o755))
	return src, dir
}

// possible reports whether a directory can have an entry of that name.
func possible(name string) bool {
	return name != "" && name != "." && name != ".." && len(name) <= 255 && !strings.ContainsAny(name, "/\x00")
}

// A follower of a history ends up with the same events as a reader, wherever a write was truncated, and
// what is read can be written again.
// Rule: history
func FuzzHistory(f *testing.F) {
	const line = `{"time":"2026-03-01T12:00:00Z","event":"broke","name":"a","by":{"host":"h","pid":7},"holder":{"host":"k","pid":1},"exit":3}` + "\n"
	for _, data := range []string{line, line + line, line + "{}\n", "\x00\x00\n" + line, line[:40] + "\n", `{"time":"9999-12-31T23:59:59-23:59"}`, "[]\nnull\n" + line} {
		f.Add("2026-03-01.h.boot", []byte(data), uint(20))
	}
	src, dir := writable(f, ".multilock", "groups", fslock.DefaultGroup, "history")
	again := open(f, fslock.Options{Base: f.TempDir()})
	since := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, name string, data []byte, cut uint) {
		if name += ".jsonl"; !possible(name) {
			return
		}
		data = append(data, '\n')
		path := filepath.Join(dir, name)
		first := data[:cut%uint(len(data))]
		require.NoError(t, os.WriteFile(path, first, 0o644))
		defer os.Remove(path)
		follower := src.Follow(since)
		defer follower.Close()
		followed := news(t, follower)
		file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = file.Write(data[len(first):])
		require.NoError(t, err)
		closed(t, file)
		followed = append(followed, news(t, follower)...)
		read, err := source.Collect(src.History(t.Context(), since))
		require.NoError(t, err)
		for _, all := range [][]source.Event{read, followed} { // History reads them a piece at a time
			slices.SortStableFunc(all, func(a, b source.Event) int { return a.Time.Compare(b.Time) })
		}
		require.Equal(t, read, followed)
		for _, e := range read {
			require.False(t, e.Time.Before(since))
			if e.Time.UTC().Year() <= 9999 { // later times have no form in JSON
				require.NoError(t, again.Record(t.Context(), []source.Event{e}))
			}
		}
		_ = os.RemoveAll(filepath.Join(again.Base(), ".multilock", "groups"))
	})
}

func news(t *testing.T, follower source.Follower) (all []source.Event) {
	t.Helper()
	for {
		some, err := follower.Next(t.Context())
		require.NoError(t, err)
		if len(some) == 0 {
			return all
		}
		all = append(all, some...)
	}
}

// Any bytes in NAME.job show that the job is alive, or nothing at all.
// Rule: job, I6
func FuzzJobMark(f *testing.F) {
	src, _ := writable(f)
	plant(f, src, "job", claim(elsewhere(f), long, long/10))
	o := observe(f, src, "job", source.StalePolicy{})
	mark := filepath.Join(src.Base(), fslock.DefaultGroup, "job", "job.job")
	for _, seed := range []string{"", "{}", "null", `{"pgid":-1}`, `{"pgid":0}`, `{"pgid":1}`, `{"pgid":1e99}`, "\x00", `{"pgid":1073741824,"start":1}`, "[" + strings.Repeat("[", 20<<10)} {
		f.Add([]byte(seed), false)
		f.Add([]byte(seed), true)
	}
	here := self(f)
	f.Fuzz(func(t *testing.T, data []byte, ours bool) {
		if ours { // of a job of this host, as far as can be known
			data = append([]byte(`{"host":"`+here.Host+`","machine":"`+here.Machine+`","boot":"`+here.Boot+`","pidns":"`+here.Namespace+`",`), data...)
		}
		require.NoError(t, os.WriteFile(mark, data, 0o644))
		require.Equal(t, source.StateHeld, look(t, o).State)
	})
}

// A leftover is removed for one reason only: a process of this host made it, and is gone.
// Rule: staging
func FuzzLeftover(f *testing.F) {
	src, staging := writable(f, ".multilock", "staging")
	dead := theDead(self(f))
	plant(f, src, "job", claim(dead, long, long/10))
	record, err := os.ReadFile(filepath.Join(src.Base(), fslock.DefaultGroup, "job", "job.locked"))
	require.NoError(f, err)
	const token = "5f1c0000-0000-4000-8000-000000000000"
	for _, entry := range []string{"5f1c", token, ".trash-" + token, token + ".manifest", ".nfs0000", "\x1b[31m", "fs-ext4.replaces", strings.Repeat("n", 255)} {
		f.Add(entry, "job.locked", record)
		f.Add(entry, "other.locked", record)
		f.Add(entry, "job.locked", record[:40])
		f.Add(entry, "list", []byte(nil))
	}
	f.Fuzz(func(t *testing.T, entry, file string, data []byte) {
		if !possible(entry) || !possible(file) {
			return
		}
		for _, old := range namesIn(t, staging) {
			require.NoError(t, os.RemoveAll(filepath.Join(staging, old)))
		}
		dir := filepath.Join(staging, entry)
		require.NoError(t, os.Mkdir(dir, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), data, 0o644))
		found, err := src.Leftovers(t.Context())
		require.NoError(t, err)
		require.Len(t, found, 1)
		require.Equal(t, entry, found[0].Entry)
		swept, err := src.Sweep(t.Context())
		require.NoError(t, err)
		require.Equal(t, found[0].Dead || found[0].Strange, len(swept) == 1)
		if found[0].Strange {
			require.FileExists(t, filepath.Join(dir, file))
		}
		if found[0].Dead {
			name, isLock := strings.CutSuffix(file, ".locked")
			require.True(t, isLock)
			require.Equal(t, dead.Boot, fslock.ParseRecord(name, data).Holder.Boot)
		}
		held, err := os.ReadFile(filepath.Join(src.Base(), fslock.DefaultGroup, "job", "job.locked"))
		require.NoError(t, err)
		require.Equal(t, record, held)
	})
}

// A name is rejected, or it is one entry of the group, and nothing is made anywhere else.
// Rule: base
func FuzzLockName(f *testing.F) {
	for _, name := range []string{"nightly", "", ".", "..", "a/b", "../x", "\x00", ".multilock", "a\nb", "é", "\xff", "x.locked", strings.Repeat("n", 248), strings.Repeat("n", 249)} {
		f.Add(name)
	}
	around := f.TempDir()
	base := filepath.Join(around, "base")
	require.NoError(f, os.Mkdir(base, 0o755))
	src := open(f, fslock.Options{Base: base})
	f.Fuzz(func(t *testing.T, name string) {
		lock, err := multilock.TryAcquire(t.Context(), src, name, multilock.Options{})
		require.Equal(t, fslock.CheckName(name) == nil, err == nil, err)
		require.Equal(t, possible(name) && len(name) <= 248, err == nil)
		if err != nil {
			require.ErrorIs(t, err, source.ErrInvalid)
			return
		}
		require.Equal(t, []string{name}, namesIn(t, filepath.Join(base, fslock.DefaultGroup)))
		require.Equal(t, []string{name + ".locked"}, namesIn(t, filepath.Join(base, fslock.DefaultGroup, name)))
		require.NoError(t, lock.Release(t.Context()))
		require.Equal(t, []string{"base"}, namesIn(t, around))
		require.ElementsMatch(t, []string{".locks", ".multilock"}, namesIn(t, base))
	})
}
