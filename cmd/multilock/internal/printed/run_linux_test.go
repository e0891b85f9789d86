package printed_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/internal/printed"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// runs writes runs under one lock.
type runs struct {
	*group
	limits printed.Limits
	last   uint64
}

func newRuns(t *testing.T, limits printed.Limits) *runs {
	t.Helper()
	return &runs{group: newGroup(t), limits: limits}
}

func (r *runs) begin() *printed.RunLog {
	r.last++
	l := printed.NewRunLog(r.src.OpenRuns, "h", "a", source.NewToken(), r.last, r.limits)
	require.NoError(r, l.BeginAttempt(printed.Head{Attempt: 1, Began: time.Now()}))
	return l
}

func (r *runs) run(text string) {
	r.Helper()
	l := r.begin()
	j := l.Attempt(printed.Out)
	_, err := j.Write([]byte(text))
	require.NoError(r, err)
	require.NoError(r, j.Close())
	require.NoError(r, l.End("exit 0"))
}

// kept returns the numbers of the stored runs.
func (r *runs) kept() (numbers []uint64) {
	r.Helper()
	dir, err := r.src.FindRuns("a")
	require.NoError(r, err)
	defer dir.Close()
	all, err := printed.RunsIn(dir)
	require.NoError(r, err)
	for _, run := range all {
		numbers = append(numbers, run.Number)
	}
	return numbers
}

// show returns the output of a run, and its reader.
func (r *runs) show(number int, cut bool) (string, *printed.RunReader) {
	r.Helper()
	dir, err := r.src.FindRuns("a")
	require.NoError(r, err)
	defer dir.Close()
	all, err := printed.RunsIn(dir)
	require.NoError(r, err)
	run, err := printed.Choose(all, number)
	require.NoError(r, err)
	reader := printed.NewRunReader(dir, run, func(err error) { r.leftOut = append(r.leftOut, err.Error()) })
	var text strings.Builder
	require.NoError(r, reader.Each(cut, func(f printed.Frame) error {
		data, err := reader.Content(f)
		text.Write(data)
		return err
	}))
	return text.String(), reader
}

func (r *runs) size() (size int64) {
	r.Helper()
	files, err := filepath.Glob(filepath.Join(r.src.Base(), ".multilock", "groups", "*", "runs", "a", "*"))
	require.NoError(r, err)
	for _, file := range files {
		info, err := os.Stat(file)
		require.NoError(r, err)
		size += info.Size()
	}
	return size
}

// The last runs are kept, up to the limit, and no other file is touched.
// Rule: output
func TestLastRunsAreKept(t *testing.T) {
	r := newRuns(t, printed.Limits{Runs: 3, Size: 64 << 20})
	r.run("1")
	dir, err := r.src.OpenRuns("a")
	require.NoError(t, err)
	defer dir.Close()
	foreign := dir.Path("000000000001.mine.out")
	require.NoError(t, os.WriteFile(foreign, []byte("x"), 0o600))
	for n := range 5 {
		r.run(fmt.Sprint(n + 2))
	}
	require.Equal(t, []uint64{4, 5, 6}, r.kept())
	require.FileExists(t, foreign)
	for number, want := range map[int]string{0: "6", -1: "5", -2: "4", 4: "4"} {
		text, reader := r.show(number, false)
		require.Equal(t, want, text)
		require.Equal(t, "exit 0", reader.End)
		require.Equal(t, 1, reader.Tries)
	}
	all, err := printed.RunsIn(dir)
	require.NoError(t, err)
	for _, number := range []int{-3, 3, 7} {
		_, err = printed.Choose(all, number)
		require.ErrorContains(t, err, "3 runs are, from run 4 to run 6")
	}
	require.Empty(t, r.leftOut)
}

// A run with much output keeps its beginning and its end, and does not displace all earlier runs.
// Rule: output
func TestRunThatPrintsMuch(t *testing.T) {
	r := newRuns(t, printed.Limits{Runs: 20, Size: 2 << 20})
	r.run(strings.Repeat("early\n", 100_000))
	r.run("small")
	var much strings.Builder
	for n := range 500_000 {
		fmt.Fprintln(&much, "line", n)
	}
	r.run(much.String())
	require.LessOrEqual(t, r.size(), r.limits.Size)
	require.Equal(t, []uint64{1, 2, 3}, r.kept())
	text, reader := r.show(0, false)
	require.True(t, reader.Dropped)
	require.True(t, strings.HasPrefix(text, "line 0\nline 1\n"), text[:20])
	require.True(t, strings.HasSuffix(text, "line 499999\n"))
	require.Greater(t, len(text), 700<<10)
}

// A run that is removed for lack of room is removed as a whole: never only its beginning.
// Rule: output
func TestEarlierRunsAreRemovedWhole(t *testing.T) {
	r := newRuns(t, printed.Limits{Runs: 20, Size: 2 << 20})
	for range 3 {
		r.run("first\n" + strings.Repeat("much\n", 500_000))
		require.LessOrEqual(t, r.size(), r.limits.Size)
	}
	require.Equal(t, []uint64{2, 3}, r.kept())
	for _, number := range []int{2, 3} {
		text, reader := r.show(number, false)
		require.True(t, strings.HasPrefix(text, "first\n"))
		require.True(t, reader.Dropped)
		require.Equal(t, 1, reader.Tries)
		require.Equal(t, "exit 0", reader.End)
	}
}

// The output of a killed run is read up to its end.
// Rule: output
func TestRunThatWasCut(t *testing.T) {
	r := newRuns(t, printed.Limits{Runs: 3, Size: 64 << 20})
	j := r.begin().Attempt(printed.Out)
	_, err := j.Write([]byte("one\ntwo\n"))
	require.NoError(t, err)
	require.NoError(t, j.Flush())
	files, err := filepath.Glob(filepath.Join(r.src.Base(), ".multilock", "groups", "*", "runs", "a", "*"))
	require.NoError(t, err)
	require.NoError(t, os.Truncate(files[0], r.size()-4))
	text, reader := r.show(0, false)
	require.Empty(t, text)
	require.Empty(t, reader.End)
	text, _ = r.show(0, true)
	require.Equal(t, "one\nt", text)
	r.run("next")
	text, _ = r.show(-1, true)
	require.Equal(t, "one\nt", text)
	require.Empty(t, r.leftOut)
}

// A full disk loses output, and is reported. The end is recorded when there is room again.
// Rule: output
func TestRunOnAFullDisk(t *testing.T) {
	r := newRuns(t, printed.Limits{Runs: 3, Size: 64 << 20})
	l := r.begin()
	r.fs.Inject(func(op faultfs.Op) error {
		if op.Phase == faultfs.Before && op.Kind == "write" {
			return syscall.ENOSPC
		}
		return nil
	})
	j := l.Attempt(printed.Out)
	_, err := j.Write([]byte("lost\n"))
	require.NoError(t, err)
	require.ErrorIs(t, j.Close(), syscall.ENOSPC)
	require.ErrorIs(t, l.BeginAttempt(printed.Head{Attempt: 2, Began: time.Now()}), syscall.ENOSPC)
	r.fs.Inject(nil)
	require.NoError(t, l.End("exit 3"))
	_, reader := r.show(0, false)
	require.Equal(t, "exit 3", reader.End)
}
