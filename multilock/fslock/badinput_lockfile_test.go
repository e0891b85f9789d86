//go:build linux

package fslock_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

// lockFiles are things at NAME.locked that are not a record. Each function puts one at path; record is a
// valid one.
func lockFiles() map[string]func(path string, record []byte) error {
	content := func(change func(record []byte) []byte) func(string, []byte) error {
		return func(path string, record []byte) error { return os.WriteFile(path, change(record), 0o666) }
	}
	always := func(text string) func(string, []byte) error {
		return content(func([]byte) []byte { return []byte(text) })
	}
	return map[string]func(string, []byte) error{
		"empty":               always(""),
		"NUL bytes":           always(strings.Repeat("\x00", 4096)),
		"binary":              always("\x7fELF\x02\x01\x01\x00\xff\xfe\n\n\x00 \x80"),
		"foreign text":        always("locked by the backup, do not touch\n"),
		"a pid only":          always("4711\n"),
		"a pid and no number": always("host fortytwo\n"),
		"a newer format":      content(func(r []byte) []byte { return bytes.Replace(r, []byte(`"v":1`), []byte(`"v":2`), 1) }),
		"torn":                content(func(r []byte) []byte { return r[:len(r)*2/3] }),
		"with a tail":         content(func(r []byte) []byte { return append(r, "more"...) }),
		"huge": func(path string, record []byte) error {
			return errors.Join(os.WriteFile(path, record, 0o666), os.Truncate(path, 1<<30))
		},
		"a FIFO": func(path string, _ []byte) error { return syscall.Mkfifo(path, 0o666) },
		"a dangling link": func(path string, _ []byte) error {
			return os.Symlink("nowhere", path)
		},
		"a link to a record": func(path string, record []byte) error {
			target := filepath.Join(filepath.Dir(path), "..", "..", "record")
			return errors.Join(os.WriteFile(target, record, 0o666), os.Symlink(target, path))
		},
	}
}

// spoil puts something else in the place of the lock file of "job", and makes it look as if it had not been
// touched for half an hour.
func spoil(t *testing.T, base string, put func(string, []byte) error) {
	t.Helper()
	dir := filepath.Join(base, "group", "job")
	path := filepath.Join(dir, "job.locked")
	record, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.Remove(path))
	require.NoError(t, put(path, record))
	then := time.Now().Add(-30 * time.Minute)
	require.NoError(t, os.Chtimes(dir, then, then))
}

// A lock with an unreadable record is held at any age, and is only broken if the caller sets MaxAge.
// Rule: I6, unreadable
func TestLockFilesThatAreNoRecord(t *testing.T) {
	for what, put := range lockFiles() {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			base := used(t)
			opt := fslock.Options{Base: base, Group: "group"}
			src := open(t, opt)
			plant(t, src, "job", claim(self(t), time.Second, 100*time.Millisecond)) // a TTL that can be read counts
			spoil(t, base, put)

			refused(t, base, source.ErrHeld, []string{"an unknown process", "--max-age", "break --force"},
				attempt(t, opt, "job", source.StalePolicy{}))
			refused(t, base, source.ErrHeld, []string{"an unknown process"},
				attempt(t, opt, "job", source.StalePolicy{MaxAge: 24 * time.Hour}))
			seen, err := multilock.Inspect(t.Context(), src, "job", source.StalePolicy{})
			require.NoError(t, err)
			require.NotEmpty(t, seen.Record.Foreign)
			require.Empty(t, seen.Record.Token)

			lock, err := multilock.TryAcquire(within(t), src, "job", multilock.Options{StalePolicy: source.StalePolicy{MaxAge: time.Second}})
			require.NoError(t, err)
			require.NoError(t, lock.Release(t.Context()))
			requireBroken(t, src, "job", "no heartbeat")
			require.Empty(t, namesIn(t, filepath.Join(base, "group")))
		})
	}
}

// A directory in the lock file's place may contain anything: nothing removes it.
// Rule: I6
func TestDirectoryInTheLockFilesPlace(t *testing.T) {
	base := used(t)
	opt := fslock.Options{Base: base, Group: "group"}
	plant(t, open(t, opt), "job", claim(self(t), long, time.Minute))
	spoil(t, base, func(path string, _ []byte) error {
		return errors.Join(os.Mkdir(path, 0o777), os.WriteFile(filepath.Join(path, "thesis.txt"), nil, 0o666))
	})
	refused(t, base, source.ErrHeld, []string{"an unknown process", "not a regular file"}, attempt(t, opt, "job", source.StalePolicy{}))
	refused(t, base, syscall.EISDIR, []string{"break", "job.locked"}, attempt(t, opt, "job", source.StalePolicy{MaxAge: time.Second}))
}

// A symbolic link in the place of the record is not followed, and the link's target survives the break.
// Rule: I2, break
func TestLinkedRecordSurvivesTheBreaking(t *testing.T) {
	base := used(t)
	opt := fslock.Options{Base: base, Group: "group"}
	src := open(t, opt)
	plant(t, src, "job", claim(self(t), long, time.Minute))
	spoil(t, base, lockFiles()["a link to a record"])
	acquire(t, src, "job", multilock.Options{StalePolicy: source.StalePolicy{MaxAge: time.Second}})
	require.FileExists(t, filepath.Join(base, "record"))
}

// An unreadable record of multilock, or of a later version of it, is not held forever: its holder would
// touch the directory. Other bytes are never judged. If a kernel goes down before the record is written, it
// leaves an empty file with the sticky bit: that lock is free after three of the longest heartbeat
// intervals.
// Rule: I6, unreadable
func TestSilenceOfWhomNobodyUnderstands(t *testing.T) {
	const head, marked = "node7 4711\n", "the mark"
	for name, c := range map[string]struct {
		content string
		silent  time.Duration
		want    source.State
		why     string
	}{
		"empty and marked":                   {marked, 50 * time.Minute, source.StateSuspect, "watching it for 45s"},
		"empty and marked, young":            {marked, 0, source.StateHeld, "its record is empty"},
		"empty, for half an hour":            {"", 30 * time.Minute, source.StateHeld, "the lock file is empty; it counts as dead after 1h0m0s without a heartbeat"},
		"empty":                              {"", 61 * time.Minute, source.StateSuspect, "limit of 1h0m0s"},
		"zeros":                              {"\x00\x00\x00", 61 * time.Minute, source.StateSuspect, "limit of 1h0m0s"},
		"torn":                               {head + `{"v":1,"token":"2f`, 61 * time.Minute, source.StateSuspect, "limit of 1h0m0s"},
		"the end is zeros":                   {head + "\x00\x00\x00", 61 * time.Minute, source.StateSuspect, "limit of 1h0m0s"},
		"a later version":                    {head + `{"v":2,"token":{"new":1}}`, 61 * time.Minute, source.StateSuspect, "limit of 1h0m0s"},
		"a later version, with a ttl":        {head + `{"v":2,"ttl_ms":7200000}`, 179 * time.Minute, source.StateHeld, "counts as dead after 3h0m0s"},
		"the same, beyond":                   {head + `{"v":2,"ttl_ms":7200000}`, 181 * time.Minute, source.StateSuspect, "limit of 3h0m0s"},
		"a later version, an odd ttl":        {head + `{"v":2,"ttl_ms":"2h"}`, 61 * time.Minute, source.StateSuspect, "limit of 1h0m0s"},
		"a later version, an impossible ttl": {head + `{"v":2,"ttl_ms":9223372036854775807}`, 61 * time.Minute, source.StateHeld, "counts as dead after"},
		"no token":                           {head + `{"v":1,"host":"a","ttl_ms":1000}`, 61 * time.Minute, source.StateSuspect, "limit of 1h0m1s"},
		"a Python peer":                      {head, 24 * time.Hour, source.StateHeld, "only --max-age or break --force"},
		"a Python peer, cut":                 {"node7 47", 24 * time.Hour, source.StateHeld, "only --max-age or break --force"},
		"half a first line":                  {"node7", 24 * time.Hour, source.StateHeld, "only --max-age or break --force"},
		"somebody's notes":                   {"do not run this\n" + `{"v":2}`, 24 * time.Hour, source.StateHeld, "only --max-age or break --force"},
	} {
		t.Run(name, func(t *testing.T) {
			base := fresh(t)
			putLockFile(t, base, "job", []byte(strings.TrimPrefix(c.content, marked)))
			dir := filepath.Join(base, fslock.DefaultGroup, "job")
			if c.content == marked {
				require.NoError(t, os.Chmod(filepath.Join(dir, "job.locked"), 0o666|os.ModeSticky))
			}
			then := time.Now().Add(-c.silent)
			require.NoError(t, os.Chtimes(dir, then, then))
			seen := look(t, observe(t, open(t, fslock.Options{Base: base}), "job", source.StalePolicy{}))
			require.Equal(t, c.want.String(), seen.State.String(), seen.Why)
			require.Contains(t, seen.Why, c.why)
			require.NotEmpty(t, seen.Record.Name)
			require.Empty(t, seen.Record.Token)
		})
	}
}

// One byte too many makes the record unreadable, even after a valid record.
// Rule: I6, record
func TestLockFileThatIsAByteTooLarge(t *testing.T) {
	for size, told := range map[int]string{64 << 10: "Python MultiLock", 64<<10 + 1: "larger than any"} {
		base, _, src := contested(t, scene{})
		const record = "host 7\n"
		putLockFile(t, base, sweptName, []byte(record+strings.Repeat(" ", size-len(record))))
		require.Contains(t, look(t, observe(t, src, sweptName, source.StalePolicy{})).Why, told)
	}
}
