package lockgroup

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/source"
)

// A slot's name has one form, and what is not one is left as it is.
func FuzzSlotName(f *testing.F) {
	for _, name := range []string{"a#slot-1", "a#slot-01", "a#slot-0", "#slot-1", "a#slot-1#slot-2", "a#slot-99999999999999999999", "a#slot-+1", "a"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, lock string) {
		name, i, ok := ParseSlotName(lock)
		if ok {
			require.Positive(t, i)
			require.Equal(t, lock, SlotName(name, i))
		}
		again, seven, ok := ParseSlotName(SlotName(lock, 7))
		require.True(t, ok)
		require.Equal(t, 7, seven)
		require.Equal(t, lock, again)
	})
}

// So has a chunk's.
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

// Whatever a history tells, each job has one last run, and is reported once at most.
func FuzzEnds(f *testing.F) {
	const acquired = `{"time":"2026-03-01T12:00:00Z","event":"acquired","name":"a#slot-1","token":"t","command":"make"}` + "\n"
	for _, events := range []string{acquired, acquired + `{"event":"lost","name":"a"}`, `{"event":"broke","token":"t"}`, `{"event":"committed"}`, `{"event":"committed","exit":1,"held_ns":-9223372036854775808}`, acquired + `{"event":"released","name":"a#slot-1","token":"t","exit":3}`} {
		f.Add([]byte(events))
	}
	f.Fuzz(func(t *testing.T, lines []byte) {
		told := newEnds()
		for line := range bytes.Lines(lines) {
			var e source.Event
			if json.Unmarshal(line, &e) == nil {
				told.add(e)
				_ = told.knows(e.Name, e.Token)
			}
		}
		last := told.last()
		require.LessOrEqual(t, len(told.open()), len(last))
		require.LessOrEqual(t, len(last), len(told.runs))
		var report Report
		told.report(&report)
		require.LessOrEqual(t, len(report.Failed)+len(report.Crashed), len(last))
		for _, r := range report.Failed {
			require.False(t, r.OK(), r)
		}
	})
}

// manifestOf is a manifest that anybody may have written.
type manifestOf []byte

func (m manifestOf) Publish(context.Context, []byte) ([]byte, error) { return m, nil }
func (m manifestOf) Retract(context.Context) error                   { return nil }
func (m manifestOf) OpenManifest(context.Context) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(m)), nil
}

// A job's number in a list is that of the line with its name among those that have a tab, if the
// first line has none.
func FuzzNumbers(f *testing.F) {
	for _, manifest := range []string{"", "#chunks\na\tmake\nb\n", "a\tmake\n", "#\n\\\\\tx\n\\n\ty\n\n", "#\na\t1\n#more\nb\n\t2\n", "#\n" + strings.Repeat("x", 1<<20) + "\n" + strings.Repeat("y", 1<<20) + "\tz\na\t\n"} {
		f.Add([]byte(manifest), "a", "b\n")
	}
	f.Fuzz(func(t *testing.T, manifest []byte, one, other string) {
		numbers, err := numbersOf(t.Context(), manifestOf(manifest), []string{one, other})
		require.NoError(t, err)
		lines := bytes.Split(manifest, []byte("\n"))
		length, err := ListLength(t.Context(), manifestOf(manifest))
		require.NoError(t, err)
		first := string(lines[0])
		lines = slices.DeleteFunc(lines, func(line []byte) bool { return !bytes.Contains(line, []byte("\t")) })
		require.LessOrEqual(t, length, len(lines))
		for name, number := range numbers {
			require.Contains(t, []string{one, other}, name)
			require.NotContains(t, first, "\t")
			field, _, _ := bytes.Cut(lines[number-1], []byte("\t"))
			require.Equal(t, strings.NewReplacer("\\", `\\`, "\n", `\n`).Replace(name), string(field))
		}
	})
}
