package report_test

import (
	"encoding/csv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/report"
)

func TestCSV(t *testing.T) {
	t.Parallel()
	start, three := time.Date(2026, 11, 29, 1, 2, 3, 4000, time.UTC), 3
	text, err := report.CSV(&report.Timeline{Jobs: []report.Job{
		{Name: "convert, all", State: report.Done, Runs: []report.Run{
			{Host: "h1", User: "ann", State: report.Failed, Start: start, End: start.Add(1500 * time.Millisecond), Attempt: 1, Exit: &three, Command: `echo "x"`},
			{Host: "h2", State: report.Running, Start: start, Attempt: 2},
		}},
		{Name: "old", State: report.Deleted, Why: "by\nhand"},
	}}, strings.ToUpper)
	require.NoError(t, err)
	lines, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
	require.NoError(t, err)
	require.Equal(t, [][]string{
		{"NAME", "STATE", "ATTEMPT", "HOST", "USER", "START", "END", "DURATION_SECONDS", "EXIT", "SIGNAL", "WHY", "COMMAND"},
		{"CONVERT, ALL", "FAILED", "1", "H1", "ANN", "2026-11-29T01:02:03.000004Z", "2026-11-29T01:02:04.500004Z", "1.500000", "3", "", "", `ECHO "X"`},
		{"CONVERT, ALL", "RUNNING", "2", "H2", "", "2026-11-29T01:02:03.000004Z", "", "", "", "", "", ""},
		{"OLD", "DELETED", "", "", "", "", "", "", "", "", "BY\nHAND", ""},
	}, lines)
}
