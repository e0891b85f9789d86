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

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

// done puts a file or directory where the result of a job belongs.
func done(t *testing.T, put func(path string) error) (base string) {
	t.Helper()
	base = used(t)
	require.NoError(t, os.MkdirAll(filepath.Dir(resultPath(base)), 0o777))
	require.NoError(t, put(resultPath(base)))
	return base
}

func writing(content string) func(string) error {
	return func(path string) error { return os.WriteFile(path, []byte(content), 0o644) }
}

const goodResult = `{"v":1,"group":".locks","name":"lock","token":"t","by":{"host":"node7","pid":1},"exit":0,"attempt":1,"final":true,"start":"2026-01-02T03:04:05Z","duration_ns":1}`

// goodChunk is the result of a chunk of four jobs: two have a result, one was given back.
const goodChunk = `{"v":1,"group":".locks","name":"lock","token":"t","by":{"host":"node7","pid":1},"exit":0,"attempt":1,"final":false,"start":"2026-01-02T03:04:05Z","duration_ns":1,` +
	`"chunk":{"from":11,"to":14,"done":1,"failed":1,"recorded":2,"returned":[{"from":14,"to":14}]}}
{"i":11,"n":"a","a":1,"s":1,"d":1}
{"i":12,"n":"b","x":3,"a":1,"s":1,"d":1}
`

// An unreadable result counts as run, never as missing.
// Rule: I6, result
func TestResultsThatCannotBeUnderstood(t *testing.T) {
	for what, c := range map[string]struct {
		put func(string) error
		why string
	}{
		"empty":              {writing(""), "empty"},
		"zeros":              {writing(strings.Repeat("\x00", 4096)), "empty"},
		"torn":               {writing(goodResult[:60]), "truncated"},
		"without its end":    {writing(goodResult), "truncated"},
		"no JSON":            {writing("done\n"), "not a record of multilock"},
		"another JSON":       {writing("{}\n"), "format 0"},
		"a later format":     {writing(strings.Replace(goodResult, `"v":1`, `"v":2`, 1) + "\n"), "format 2"},
		"without a token":    {writing(strings.Replace(goodResult, `"token":"t"`, `"token":""`, 1) + "\n"), "lacks its token"},
		"without an attempt": {writing(strings.Replace(goodResult, `"attempt":1`, `"attempt":0`, 1) + "\n"), "attempt"},
		"a line too many":    {writing(goodResult + "\n{}\n"), "not a record of multilock"},
		"a job too few":      {writing(goodChunk[:strings.Index(goodChunk, `{"i":12`)]), "missing"},
		"a torn job":         {writing(goodChunk[:len(goodChunk)-9] + "\n"), "the record of one of its jobs"},
		"another's job":      {writing(strings.Replace(goodChunk, `"i":12`, `"i":15`, 1)), "impossible record"},
		"one job twice":      {writing(strings.Replace(goodChunk, `"i":12`, `"i":11`, 1)), "impossible record"},
		"a chunk of nothing": {writing(strings.Replace(goodChunk, `"to":14,"done"`, `"to":10,"done"`, 1)), "impossible numbers"},
		"given back twice":   {writing(strings.Replace(goodChunk, `[{`, `[{"from":14,"to":14},{`, 1)), "returned jobs that it did not have"},
		"given to itself":    {writing(strings.Replace(goodChunk, `[{"from":14`, `[{"from":11`, 1)), "returned jobs that it did not have"},
		"gigantic":           {func(path string) error { return errors.Join(writing(goodResult+"\n")(path), os.Truncate(path, 1<<40)) }, "larger than any"},
		"a FIFO":             {func(path string) error { return syscall.Mkfifo(path, 0o644) }, "not a regular file"},
		"a symbolic link":    {func(path string) error { return os.Symlink("/dev/zero", path) }, "cannot be read"},
	} {
		t.Run(what, func(t *testing.T) {
			base := done(t, c.put)
			src := open(t, fslock.Options{Base: base})
			names, err := src.Results(t.Context())
			require.NoError(t, err)
			require.Equal(t, []string{sweptName}, names)
			lock := acquire(t, src, sweptName, multilock.Options{})
			for _, ask := range []func() (source.Result, error){
				func() (source.Result, error) { return src.Result(t.Context(), sweptName) },
				func() (source.Result, error) { return lock.Outcome(t.Context()) },
			} {
				found, err := ask()
				require.NoError(t, err)
				require.False(t, found.OK())
				require.Equal(t, sweptName, found.Name)
				require.Contains(t, found.Foreign, c.why)
			}
			require.NoError(t, lock.Commit(t.Context(), ended(lock.Record(), 1, 0)), "it can be replaced")
			found, err := lock.Outcome(t.Context())
			require.NoError(t, err)
			require.True(t, found.OK())
		})
	}
}

// Everything in the place of a result can be removed, except a user's own data.
// Rule: forget
func TestForgettingWhatIsThere(t *testing.T) {
	for what, put := range map[string]func(string) error{
		"nothing":                func(string) error { return nil },
		"a crashed probe's":      func(path string) error { return os.Mkdir(path, 0o777) },
		"a torn one":             writing("{"),
		"a symbolic link":        func(path string) error { return os.Symlink("nowhere", path) },
		"one of another version": writing(`{"v":9}` + "\n"),
	} {
		t.Run(what, func(t *testing.T) {
			base := done(t, put)
			lock := acquire(t, open(t, fslock.Options{Base: base}), sweptName, multilock.Options{})
			require.NoError(t, lock.Forget(t.Context()))
			_, err := os.Lstat(resultPath(base))
			require.ErrorIs(t, err, os.ErrNotExist)
			require.NoError(t, lock.Release(t.Context()))
			require.Empty(t, namesIn(t, filepath.Join(base, fslock.DefaultGroup)))
		})
	}
}

// A directory with data where a result belongs is never touched.
// Rule: outcome, commit
func TestDirectoryInThePlaceOfAResult(t *testing.T) {
	base := done(t, func(path string) error {
		return errors.Join(os.Mkdir(path, 0o777), os.WriteFile(filepath.Join(path, "thesis.txt"), []byte("years of work"), 0o644))
	})
	src := open(t, fslock.Options{Base: base})
	lock := acquire(t, src, sweptName, multilock.Options{})
	found, err := lock.Outcome(t.Context())
	require.NoError(t, err)
	require.Contains(t, found.Foreign, "a directory with files in it")
	for _, err := range []error{lock.Commit(t.Context(), ended(lock.Record(), 1, 0)), lock.Forget(t.Context())} {
		require.ErrorIs(t, err, source.ErrInvalid)
		require.ErrorContains(t, err, "move it away")
	}
	require.FileExists(t, filepath.Join(resultPath(base), "thesis.txt"))
	names, err := src.Results(t.Context())
	require.NoError(t, err)
	require.Empty(t, names)
}

// A result cannot write to the terminal of its reader.
// Rule: result
func TestResultIsHarmless(t *testing.T) {
	base := done(t, writing(strings.Replace(goodResult, "node7", `\u001b]0;owned\u0007`, 1)+"\n"))
	found, err := open(t, fslock.Options{Base: base}).Result(t.Context(), sweptName)
	require.NoError(t, err)
	require.NotContains(t, found.By.Host, "\x1b")
}

// A job's name and command are truncated, so that every committed result can be read.
// Rule: result
func TestResultWithLongTexts(t *testing.T) {
	src := open(t, fslock.Options{Base: used(t)})
	lock := acquire(t, src, sweptName, multilock.Options{})
	result := ended(lock.Record(), 1, 1)
	long := string(bytes.Repeat([]byte("\x01\xff"), 1<<20))
	result.Command, result.Why, result.User = long, long, long
	require.NoError(t, lock.Commit(t.Context(), result))
	found, err := src.Result(t.Context(), sweptName)
	require.NoError(t, err)
	require.Empty(t, found.Foreign)
	require.Equal(t, 1, found.Exit)
}

// The result of a chunk has its jobs; a summary has their number.
// Rule: result
func TestResultOfAChunk(t *testing.T) {
	src := open(t, fslock.Options{Base: used(t)})
	lock := acquire(t, src, sweptName, multilock.Options{})
	result := ended(lock.Record(), 1, 0)
	long := strings.Repeat("\x1b\xff", 1<<10)
	chunk := &source.Chunk{From: 1, To: 4, Returned: []source.Range{{From: 3, To: 3}}, Jobs: []source.ChunkJob{
		{Number: 1, Name: "a", Attempt: 1, Duration: 5}, {Number: 2, Name: "b", Exit: 1, Why: long, Attempt: 2}, {Number: 4, Name: "d", Exit: 1, Attempt: 1, Retry: true},
	}}
	chunk.Count()
	result.Chunk, result.Final = chunk, chunk.Final()
	require.NoError(t, lock.Commit(t.Context(), result))
	found, err := lock.Outcome(t.Context())
	require.NoError(t, err)
	require.Empty(t, found.Foreign)
	require.False(t, found.Final)
	require.Len(t, found.Chunk.Jobs, 3)
	require.Equal(t, chunk.Jobs[0], found.Chunk.Jobs[0])
	require.Less(t, len(found.Chunk.Jobs[1].Why), 1<<10)
	require.NotContains(t, found.Chunk.Jobs[1].Why, "\x1b")
	found.Chunk.Jobs = nil
	summary, err := src.Summary(t.Context(), sweptName)
	require.NoError(t, err)
	require.Equal(t, found, summary)
	require.Equal(t, [3]int{1, 1, 3}, [3]int{summary.Chunk.Done, summary.Chunk.Failed, summary.Chunk.Recorded})
}

// Any bytes in the file are a result; a successful result names its job. Its summary agrees with it, and it
// only reports jobs of its own chunk.
// Rule: I6, result
func FuzzResult(f *testing.F) {
	for _, seed := range []string{"", "\x00", "{}\n", goodResult, goodResult + "\n", goodChunk, goodResult[:40] + "\n", strings.Replace(goodResult, `"pid":1`, `"pid":"x"`, 1) + "\n"} {
		f.Add([]byte(seed))
	}
	base := f.TempDir()
	require.NoError(f, os.MkdirAll(filepath.Dir(resultPath(base)), 0o777))
	src := open(f, fslock.Options{Base: base})
	f.Fuzz(func(t *testing.T, data []byte) {
		require.NoError(t, os.WriteFile(resultPath(base), data, 0o644))
		found, err := src.Result(t.Context(), sweptName)
		require.NoError(t, err)
		require.Equal(t, sweptName, found.Name)
		if found.OK() {
			require.NotEmpty(t, found.Token)
			require.NotEmpty(t, found.By.Host)
			require.Positive(t, found.Attempt)
		}
		if found.Foreign != "" {
			return
		}
		if c := found.Chunk; c != nil {
			require.Len(t, c.Jobs, c.Recorded)
			for _, job := range c.Jobs {
				require.True(t, c.From <= job.Number && job.Number <= c.To)
			}
			c.Jobs = nil
		}
		summary, err := src.Summary(t.Context(), sweptName)
		require.NoError(t, err)
		require.Equal(t, found, summary)
	})
}
