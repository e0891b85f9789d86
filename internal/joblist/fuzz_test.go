package joblist

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/source"
)

// A name that parses as a chunk's is the name of that chunk.
func FuzzChunkName(f *testing.F) {
	for _, name := range []string{"#jobs-1-1", "#jobs-01-1", "#jobs-2-1", "#jobs-0-1", "#jobs-1", "#jobs-1-9223372036854775807", "#jobs-1-9223372036854775808", "#jobs-+1-2", "#jobs--1-2", "#jobs-1-2-3", "a"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if r, ok := ParseChunkName(name); ok {
			require.Equal(t, name, ChunkName(r))
			require.True(t, 1 <= r.From && r.From <= r.To)
		}
	})
}

// manifestOf is an arbitrary manifest.
type manifestOf struct {
	source.ManifestStore
	text []byte
}

func (m manifestOf) OpenManifest(context.Context) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(m.text)), nil
}

// A job's number in a list is the number of its line among those with a tab, if the first line has none. A
// line without a name is a job that was removed.
func FuzzNumbers(f *testing.F) {
	for _, manifest := range []string{"", "#chunks\na\tmake\nb\n", "a\tmake\n", "#\n\\\\\tx\n\\n\ty\n\n", "#\na\t1\n#more\nb\n\t2\n", "#\n" + strings.Repeat("x", 1<<20) + "\n" + strings.Repeat("y", 1<<20) + "\tz\na\t\n"} {
		f.Add([]byte(manifest), "a", "b\n")
	}
	f.Fuzz(func(t *testing.T, manifest []byte, one, other string) {
		numbers, err := Numbers(t.Context(), manifestOf{text: manifest}, []string{one, other})
		require.NoError(t, err)
		lines := bytes.Split(manifest, []byte("\n"))
		length := 0
		require.NoError(t, Each(t.Context(), manifestOf{text: manifest}, func(j Job) bool {
			require.Greater(t, j.Number, length)
			length = j.Number
			require.NotEmpty(t, j.Name())
			return true
		}))
		lines = slices.DeleteFunc(lines, func(line []byte) bool { return !bytes.Contains(line, []byte("\t")) })
		require.LessOrEqual(t, length, len(lines))
		for name, number := range numbers {
			require.Contains(t, []string{one, other}, name)
			field, _, _ := bytes.Cut(lines[number-1], []byte("\t"))
			require.Equal(t, strings.NewReplacer("\\", `\\`, "\n", `\n`).Replace(name), string(field))
		}
	})
}
