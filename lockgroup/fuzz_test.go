package lockgroup

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/source"
)

// A slot's name has one form, and any other name is left unchanged.
// Rule: slots
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

// Whatever a history contains, each job has one last run, and is reported at most once.
// Rule: barrier-ends
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
