package printed_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/internal/printed"
	"github.com/multilock/go/multilock/fslock"
)

// With any bytes in a file, truncated anywhere, each frame shows bytes of the file, once.
// Rule: output
func FuzzFrames(f *testing.F) {
	const whole = "=== multilock 1 \"h\"\n=== #1 attempt 1 at 2026-01-02T03:04:05Z out 6 \"a\"\nhello\n\n=== #2 attempt 3 at 2026-01-02T03:04:05.5Z err 1 \"b \\n\"\n\x00\n"
	for _, text := range []string{"", whole, whole + "x", whole[:60], "=== multilock 1 h\n", "=== multilock 1 \"h\"\n=== #1 attempt 1 at x out 65537 \"a\"\n"} {
		f.Add([]byte(text), uint(70))
	}
	src, err := fslock.Open(fslock.Options{Base: f.TempDir()})
	require.NoError(f, err)
	dir, err := src.OpenLogs()
	require.NoError(f, err)
	file := filepath.Join(src.Base(), ".multilock", "groups", fslock.DefaultGroup, "logs", "0.out")
	f.Fuzz(func(t *testing.T, data []byte, cut uint) {
		read := func(r *printed.Reader) (frames []printed.Frame) {
			require.NoError(t, r.Each(func(f printed.Frame) error {
				content, err := r.Content(f)
				require.NoError(t, err)
				require.Equal(t, data[f.At:f.At+int64(f.Size)], content)
				frames = append(frames, f)
				return nil
			}))
			return frames
		}
		ignore := func(error) {}
		following := &printed.Reader{Dir: dir, LeftOut: ignore}
		require.NoError(t, os.WriteFile(file, data[:cut%uint(len(data)+1)], 0o600))
		followed := read(following)
		require.NoError(t, os.WriteFile(file, data, 0o600))
		followed = append(followed, read(following)...)
		require.Equal(t, read(&printed.Reader{Dir: dir, LeftOut: ignore}), followed)
		for i := 1; i < len(followed); i++ {
			require.Greater(t, followed[i].At, followed[i-1].At+int64(followed[i-1].Size))
		}
	})
}

// The same for the file of a run, also when no process writes any more.
// Rule: output
func FuzzRun(f *testing.F) {
	const whole = "=== multilock 1 \"h\"\n=== #1 attempt 1 at 2026-01-02T03:04:05Z out 0 \"a\"\n\n=== #1 attempt 1 at 2026-01-02T03:04:05Z out 6 \"a\"\nhello\n\n=== #1 attempt 1 at 2026-01-02T03:04:05Z end 6 \"a\"\nexit 0\n"
	for _, text := range []string{"", whole, whole + "x", whole[:80], whole[:130], "=== multilock 1 \"h\"\n=== #1 attempt 1 at 2026-01-02T03:04:05Z out -1 \"a\"\n\n"} {
		f.Add([]byte(text))
	}
	src, err := fslock.Open(fslock.Options{Base: f.TempDir()})
	require.NoError(f, err)
	dir, err := src.OpenRuns("a")
	require.NoError(f, err)
	file := dir.Path(fslock.RunFileName(1, "6b55174e-4339-4b9e-bc2a-e76d24142991", 1) + ".out")
	f.Fuzz(func(t *testing.T, data []byte) {
		require.NoError(t, os.WriteFile(file, data, 0o600))
		runs, err := printed.RunsIn(dir)
		require.NoError(t, err)
		require.Len(t, runs, 1)
		read := func(cut bool) (frames []printed.Frame) {
			r := printed.NewRunReader(dir, runs[0], func(error) {})
			size := int64(0)
			require.NoError(t, r.Each(cut, func(f printed.Frame) error {
				content, err := r.Content(f)
				require.NoError(t, err)
				require.Equal(t, data[f.At:f.At+int64(f.Size)], content)
				require.NotEmpty(t, content)
				frames, size = append(frames, f), size+int64(f.Size)
				return nil
			}))
			require.Equal(t, size, r.Size)
			return frames
		}
		whole, all := read(false), read(true)
		require.LessOrEqual(t, len(all), len(whole)+1)
		require.Equal(t, whole, append([]printed.Frame(nil), all[:len(whole)]...))
	})
}
