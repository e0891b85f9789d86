package report_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/report"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// FuzzReport makes a report of arbitrary events and results: it counts each job once, and neither the JSON
// nor the page breaks.
func FuzzReport(f *testing.F) {
	const acquired = `{"time":"2026-03-01T12:00:00Z","event":"acquired","name":"a#slot-1","token":"t","by":{"host":"h","pid":7},"fence":3,"waited_ns":9223372036854775807}` + "\n"
	const committed = `{"time":"2026-03-01T12:05:00Z","event":"committed","name":"a#slot-1","token":"t","by":{"host":"k"},"exit":0,"attempt":1,"held_ns":-9223372036854775808}` + "\n"
	for _, events := range []string{
		"", acquired, acquired + committed, `{"event":"broke"}`, `{"time":"0000-01-01T00:00:00+23:59","event":"released","held_ns":1,"token":"x"}`, `{"time":"9999-12-31T23:59:59-23:59","event":"lost"}`,
		strings.ReplaceAll(acquired, `"h"`, `"</script>\u001b"`), `{"event":"committed","exit":1,"attempt":-1,"output":"x"}` + "\n" + `{"event":"forgot"}`,
	} {
		for _, result := range []string{"", `{"name":"a#slot-1","token":"t","attempt":1,"start":"2026-03-01T12:00:00Z","duration_ns":-1}`, `{"start":"0000-01-01T00:00:00Z","duration_ns":9223372036854775807,"final":true,"exit":2}`} {
			f.Add([]byte(events), []byte(result))
		}
	}
	f.Fuzz(func(t *testing.T, events, results []byte) {
		in := report.Input{Made: noon, Events: read[source.Event](events), Results: read[multilock.Result](results)}
		for _, e := range in.Events {
			if e.Holder != nil {
				h := lockgroup.Holding{Name: e.Name, Observation: multilock.Observation{State: multilock.StateHeld, Age: e.Held}}
				h.Observation.Record.Token, h.Observation.Record.Holder, h.Observation.Record.Prepared = e.Token, *e.Holder, e.Time
				in.Held = append(in.Held, h)
			}
		}
		timeline := report.Build(in)
		s := timeline.Summary
		require.Len(t, timeline.Jobs, s.Jobs)
		require.Equal(t, s.Jobs, s.Done+s.Failed+s.Retry+s.Running+s.Other)
		for _, h := range timeline.Hosts {
			require.True(t, h.Utilisation >= 0 && h.Utilisation <= 1, h.Utilisation)
			require.GreaterOrEqual(t, h.Busy, 0.0)
		}
		_, err := json.Marshal(timeline)
		require.NoError(t, err)
		if len(timeline.Jobs) > 0 { // otherwise there is nothing for the script
			requireWhole(t, timeline)
		}
	})
}

// requireWhole requires that the page's script can read the data, and that no text on the page is active.
func requireWhole(t *testing.T, timeline *report.Timeline) {
	t.Helper()
	page := pageOf(t, timeline)
	data := dataOf(t, page)
	require.Len(t, data.Runs, timeline.Summary.Runs)
	for _, run := range data.Runs {
		require.Less(t, int(run[0].(float64)), len(data.Jobs))
		require.Less(t, int(run[1].(float64)), len(data.Hosts))
	}
	odd := func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) && !unicode.Is(unicode.Zs, r) }
	require.Equal(t, -1, strings.IndexFunc(strings.Join(data.Texts, ""), odd))
	require.Equal(t, 2, strings.Count(page, "</script>"))
}

func read[T any](lines []byte) (found []T) {
	for line := range bytes.Lines(lines) {
		var one T
		if json.Unmarshal(line, &one) == nil {
			found = append(found, one)
		}
	}
	return found
}
