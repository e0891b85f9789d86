package printed_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/internal/printed"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/vfs"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// group is a lock group with jobs that print.
type group struct {
	*testing.T
	fs      *faultfs.FS
	src     *fslock.Source
	leftOut []string    // what LeftOut received
	faulted func() bool // whether the injected fault occurred
}

func newGroup(t *testing.T) *group {
	t.Helper()
	faulty := faultfs.New(vfs.OS{}, nil)
	src, err := fslock.Open(fslock.Options{Base: t.TempDir(), FS: faulty})
	require.NoError(t, err)
	return &group{T: t, fs: faulty, src: src}
}

func (g *group) log(host string) *printed.Log { return printed.NewLog(g.src.OpenLogs, host) }

func job(name string, attempt int) printed.Head {
	return printed.Head{Seq: 7, Attempt: attempt, Began: time.Unix(int64(1700000000+attempt), 0), Stream: printed.Out, Name: name}
}

// print writes the output of one attempt at a job.
func (g *group) print(l *printed.Log, h printed.Head, text string) {
	g.Helper()
	j := l.Begin(h)
	_, err := j.Write([]byte(text))
	require.NoError(g, err)
	require.NoError(g, j.Close())
}

// read returns all output, by name, attempt and host.
func (g *group) read() map[string]string {
	g.Helper()
	dir, err := g.src.FindLogs()
	require.NoError(g, err)
	defer dir.Close()
	r := &printed.Reader{Dir: dir, LeftOut: func(err error) { g.leftOut = append(g.leftOut, err.Error()) }}
	all := map[string]string{}
	require.NoError(g, r.Each(func(f printed.Frame) error {
		data, err := r.Content(f)
		all[fmt.Sprint(f.Name, " ", f.Attempt, " ", f.Host)] += string(data)
		return err
	}))
	return all
}

func (g *group) files() []string {
	g.Helper()
	files, err := filepath.Glob(filepath.Join(g.src.Base(), ".multilock", "groups", "*", "logs", "*"))
	require.NoError(g, err)
	return files
}

// Output is read back unchanged, with any bytes and any job name.
// Rule: output
func TestAllBytesComeBack(t *testing.T) {
	g := newGroup(t)
	var all bytes.Buffer
	for b := range 256 {
		all.WriteByte(byte(b))
	}
	texts := map[string]string{
		"all bytes": all.String(), "no newline": "x", "newlines": "\n\n\n", "zeros": strings.Repeat("\x00", 200_000),
		"a frame":             "=== #1 attempt 1 at 2026-01-02T03:04:05Z out 5 \"b\"\nxxxx\n\n=== multilock 1 \"h\"\n",
		"long lines":          strings.Repeat(strings.Repeat("y", 70_000)+"\n", 5),
		"short lines":         strings.Repeat("a line\n", 100_000),
		"a\nb \"c\" é\xff \\": "named", strings.Repeat("\xff", 248): "long name",
	}
	l := g.log("node 7")
	want := map[string]string{}
	for name, text := range texts {
		g.print(l, job(name, 1), text)
		want[name+" 1 node 7"] = text
	}
	require.NoError(t, l.Close())
	require.Equal(t, want, g.read())
	require.Empty(t, g.leftOut)
	require.Len(t, g.files(), 1)
}

// The output of concurrent jobs on several hosts does not mix, and a line that is shorter than
// a frame is not split.
// Rule: output
func TestJobsSideBySide(t *testing.T) {
	g := newGroup(t)
	var all sync.WaitGroup
	want := map[string]string{}
	for h := range 3 {
		l := g.log(fmt.Sprint("h", h))
		for n := range 8 {
			name := fmt.Sprint("job", n)
			var text strings.Builder
			for i := range 5000 {
				fmt.Fprintf(&text, "%s %d on %d\n", name, i, h)
			}
			want[fmt.Sprintf("%s 1 h%d", name, h)] = text.String()
			all.Go(func() {
				j := l.Begin(job(name, 1))
				for rest := text.String(); rest != ""; {
					piece := rest[:min(len(rest), 1000+n)]
					if _, err := j.Write([]byte(piece)); err != nil {
						t.Error(err)
						return
					}
					rest = rest[len(piece):]
				}
				if err := j.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	require.Equal(t, want, g.read())
	require.Len(t, g.files(), 3)
	for _, file := range g.files() {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			require.Regexp(t, `^(job\d \d+ on \d|=== .*|)\n$`, line)
		}
	}
}

// If a file ends anywhere, because its host crashed, all complete frames are read.
// Rule: output
func TestTruncatedEnd(t *testing.T) {
	g := newGroup(t)
	l := g.log("h")
	g.print(l, job("a", 1), "first\n")
	whole := len(must(os.ReadFile(g.files()[0])))
	g.print(l, job("b", 1), "second\n")
	text := must(os.ReadFile(g.files()[0]))
	for end := range text {
		require.NoError(t, os.WriteFile(g.files()[0], text[:end], 0o600))
		want := map[string]string{}
		if end >= whole {
			want["a 1 h"] = "first\n"
		}
		require.Equal(t, want, g.read(), "%d bytes", end)
		require.Empty(t, g.leftOut, "%d bytes", end)
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// Each reads up to a limit, and reports what it skipped.
// Rule: output
func TestIndexBeyondItsLimit(t *testing.T) {
	g := newGroup(t)
	l := g.log("h")
	for n := range 3000 {
		g.print(l, job("a", n+1), strings.Repeat("x", 100))
	}
	require.NoError(t, l.Close())
	g.print(g.log("later"), job("b", 1), "x")
	dir, err := g.src.FindLogs()
	require.NoError(t, err)
	defer dir.Close()
	count := 0
	r := &printed.Reader{Dir: dir, Limit: 64 << 10, LeftOut: func(err error) { g.leftOut = append(g.leftOut, err.Error()) }}
	visit := func(printed.Frame) error { count++; return nil }
	require.NoError(t, r.Each(visit))
	require.Less(t, count, 1000)
	require.Len(t, g.leftOut, 1)
	// A directory lists its files in any order: the small one comes before the limit, or after it.
	require.Regexp(t, `/logs is left out: files that are not read completely: [12], with 0\.\d MiB or more`, g.leftOut[0])
	for range 30 { // a reader that continues reaches the end
		require.NoError(t, r.Each(visit))
	}
	require.Equal(t, 3001, count)
}

// A file with several names is read once.
// Rule: output
func TestHardLinksAreReadOnce(t *testing.T) {
	g := newGroup(t)
	g.print(g.log("h"), job("a", 1), "first\n")
	file := g.files()[0]
	for n := range 3 {
		require.NoError(t, os.Link(file, filepath.Join(filepath.Dir(file), fmt.Sprintf("zz%d.out", n))))
	}
	for range 2 {
		g.leftOut = nil
		require.Equal(t, map[string]string{"a 1 h": "first\n"}, g.read())
		require.Len(t, g.leftOut, 3)
		require.Contains(t, g.leftOut[0], "zz0.out is left out: it is the same file as "+filepath.Base(file))
	}
}

// Bytes in an unknown format are reported, and hide neither what precedes them nor other files.
// Rule: output
func TestUnknownBytes(t *testing.T) {
	for name, foreign := range map[string]string{
		"a line": "hello\n", "zeros": strings.Repeat("\x00", 4096), "no line": strings.Repeat("x", 1<<20),
		"a frame that is too long": "=== #1 attempt 1 at 2026-01-02T03:04:05Z out 99999999999 \"b\"\n",
		"a frame without an end":   "=== #1 attempt 1 at 2026-01-02T03:04:05Z out 3 \"b\"\nabcdef\n",
		"a negative one":           "=== #1 attempt 1 at 2026-01-02T03:04:05Z out -3 \"b\"\nabcdef\n",
	} {
		t.Run(name, func(t *testing.T) {
			g := newGroup(t)
			l := g.log("h")
			g.print(l, job("a", 1), "first\n")
			f, err := os.OpenFile(g.files()[0], os.O_APPEND|os.O_WRONLY, 0)
			require.NoError(t, err)
			_, err = f.WriteString(foreign)
			require.NoError(t, err)
			require.NoError(t, f.Close())
			g.print(g.log("h"), job("a", 2), "second\n")
			require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(g.files()[0]), "0.out"), []byte(foreign), 0o600))
			require.Equal(t, map[string]string{"a 1 h": "first\n", "a 2 h": "second\n"}, g.read())
			require.Len(t, g.leftOut, 2)
		})
	}
}

// If any call fails or loses its reply, all output of jobs without an error is stored, and later jobs
// continue printing.
// Rule: output
func TestErrorAtEachCall(t *testing.T) {
	for _, phase := range []faultfs.Phase{faultfs.Before, faultfs.After} {
		for n, struck := 0, true; struck; n++ {
			g := newGroup(t)
			l := g.log("h")
			g.print(l, job("before", 1), "before\n")
			g.strike(n, phase)
			j := l.Begin(job("a", 1))
			_, err := j.Write([]byte(strings.Repeat("a line\n", 20_000)))
			if err == nil {
				err = j.Close()
			} else {
				require.NoError(t, j.Close(), "the error was returned already")
			}
			struck = g.struck()
			g.print(l, job("after", 1), "after\n")
			kept := g.read()
			require.Equal(t, "before\n", kept["before 1 h"])
			require.Equal(t, "after\n", kept["after 1 h"])
			if err == nil {
				require.Equal(t, strings.Repeat("a line\n", 20_000), kept["a 1 h"])
			}
		}
	}
}

// strike makes the call n from now on fail.
func (g *group) strike(n int, phase faultfs.Phase) {
	g.fs.Inject(func(op faultfs.Op) error {
		if op.Phase != phase {
			return nil
		}
		if n--; n == -1 {
			return syscall.EIO
		}
		return nil
	})
	g.faulted = func() bool { return n < 0 }
}

func (g *group) struck() bool {
	g.fs.Inject(nil)
	return g.faulted()
}

// After one or all files were removed, the next frame is written to a new file.
// Rule: output
func TestRemovedFile(t *testing.T) {
	g := newGroup(t)
	l := g.log("h")
	g.print(l, job("a", 1), "gone\n")
	require.NoError(t, os.RemoveAll(filepath.Dir(g.files()[0])))
	g.print(l, job("a", 2), "kept\n")
	require.Equal(t, map[string]string{"a 2 h": "kept\n"}, g.read())
}

// A job with much output uses little memory, and fills several files.
// Rule: output
func TestMuchOutput(t *testing.T) {
	g := newGroup(t)
	l := g.log("h")
	j := l.Begin(job("big", 1))
	piece := bytes.Repeat([]byte("0123456789abcde\n"), 1<<10)
	size := int64(140 << 20)
	if testing.Short() {
		size = 70 << 20
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for done := int64(0); done < size; done += int64(len(piece)) {
		_, err := j.Write(piece)
		require.NoError(t, err)
	}
	require.NoError(t, j.Close())
	runtime.ReadMemStats(&after)
	require.Less(t, int64(after.HeapSys)-int64(before.HeapSys), int64(32<<20))
	require.Greater(t, len(g.files()), 1)
	for _, file := range g.files() {
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.LessOrEqual(t, info.Size(), int64(65<<20))
	}
	dir, err := g.src.FindLogs()
	require.NoError(t, err)
	defer dir.Close()
	r := &printed.Reader{Dir: dir}
	got := int64(0)
	require.NoError(t, r.Each(func(f printed.Frame) error { got += int64(f.Size); return nil }))
	require.Equal(t, size, got)
}

// A reader that follows shows each frame once, including one that was truncated before.
// Rule: output
func TestFollowing(t *testing.T) {
	g := newGroup(t)
	l := g.log("h")
	g.print(l, job("a", 1), "one\n")
	dir, err := g.src.FindLogs()
	require.NoError(t, err)
	defer dir.Close()
	r := &printed.Reader{Dir: dir}
	var seen []string
	more := func() []string {
		seen = nil
		require.NoError(t, r.Each(func(f printed.Frame) error {
			data, err := r.Content(f)
			seen = append(seen, string(data))
			return err
		}))
		return seen
	}
	require.Equal(t, []string{"one\n"}, more())
	require.Empty(t, more())
	j := l.Begin(job("b", 1))
	_, err = j.Write([]byte("two\nthr"))
	require.NoError(t, err)
	require.NoError(t, j.Flush())
	require.Equal(t, []string{"two\n"}, more(), "lines that are complete")
	require.NoError(t, j.Close())
	require.Equal(t, []string{"thr"}, more())

	text := must(os.ReadFile(g.files()[0]))
	g.print(l, job("c", 1), "four\n")
	whole := must(os.ReadFile(g.files()[0]))
	for end := len(text); end < len(whole); end++ {
		require.NoError(t, os.WriteFile(g.files()[0], whole[:end], 0o600))
		require.Empty(t, more())
	}
	require.NoError(t, os.WriteFile(g.files()[0], whole, 0o600))
	require.Equal(t, []string{"four\n"}, more())
	g.print(g.log("other"), job("d", 1), "five\n")
	require.Equal(t, []string{"five\n"}, more())
}

// Two processes of one host write to different files.
// Rule: output
func TestProcessesOfOneHost(t *testing.T) {
	g := newGroup(t)
	first, second := g.log("h"), g.log("h")
	for n := range 3 {
		g.print(first, job(fmt.Sprint("a", n), 1), "of the first\n")
		g.print(second, job(fmt.Sprint("b", n), 1), "of the second\n")
	}
	require.Len(t, g.files(), 2)
	require.Len(t, g.read(), 6)
}

// A file that is not regular is reported once, and does not block.
// Rule: output
func TestNotRegularFiles(t *testing.T) {
	g := newGroup(t)
	g.print(g.log("h"), job("a", 1), "kept\n")
	dir, precious := filepath.Dir(g.files()[0]), filepath.Join(t.TempDir(), "precious")
	require.NoError(t, os.WriteFile(precious, []byte("=== multilock 1 \"h\"\n"), 0o600))
	require.NoError(t, os.Symlink(precious, filepath.Join(dir, "link.out")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe.out"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "dir.out"), 0o700))
	require.Equal(t, map[string]string{"a 1 h": "kept\n"}, g.read())
	require.Len(t, g.leftOut, 3)
	for _, name := range []string{"link.out", "pipe.out", "dir.out"} {
		require.Contains(t, strings.Join(g.leftOut, "\n"), name)
	}
}

// A full disk affects only the output of the job that prints then.
// Rule: output
func TestFullDisk(t *testing.T) {
	g := newGroup(t)
	l := g.log("h")
	g.print(l, job("before", 1), "before\n")
	g.fs.Inject(func(op faultfs.Op) error {
		if op.Phase == faultfs.Before && op.Kind == "write" {
			return syscall.ENOSPC
		}
		return nil
	})
	j := l.Begin(job("a", 1))
	_, err := j.Write([]byte("lost\n"))
	require.NoError(t, err)
	require.ErrorIs(t, j.Close(), syscall.ENOSPC)
	g.fs.Inject(nil)
	g.print(l, job("after", 1), "after\n")
	require.Equal(t, map[string]string{"before 1 h": "before\n", "after 1 h": "after\n"}, g.read())
	require.Empty(t, g.leftOut, "an empty file is a new one")
}
