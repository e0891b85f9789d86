//go:build unix

package main_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// tickReport is the part of the JSON of "run --every" that the tests read.
type tickReport struct {
	Ran      bool
	Tick     time.Time
	Warnings []string
}

func tickReportOf(t *testing.T, got ended) tickReport {
	t.Helper()
	require.Zero(t, got.code, got.stderr)
	lines := strings.Split(strings.TrimSpace(got.stderr), "\n")
	var report tickReport
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &report), got.stderr)
	return report
}

// A cron line that fires midway between two ticks gets a warning, even with --quiet, and a better line. The
// better line works.
func TestEveryNearTheEdge(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	middle := time.Now().UTC().Add(12 * time.Hour)
	got := s.once([]string{"-q", "--json", "--every", "1d@" + middle.Format("15:04")}, "true")
	report := tickReportOf(t, got)
	require.True(t, report.Ran)
	require.Len(t, report.Warnings, 1)
	require.Contains(t, got.stderr, `"level":"warning","message":"job \"x\" runs `)
	require.Contains(t, report.Warnings[0], "near to the middle between two ticks")
	better := regexp.MustCompile(`write (--every) (1d@\d\d:\d\d);`).FindStringSubmatch(report.Warnings[0])
	require.NotNil(t, better, report.Warnings[0])

	s.must("clean", "--results")
	require.Equal(t, ended{0, "", ""}, s.once(better[1:], "true"))
}

// If the server's clock was wrong once, no job is blocked, and that is reported.
func TestEveryAfterAWrongClock(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.spoil("x", `{"v":1,"group":".locks","name":"x","token":"t","by":{"host":"alpha"},"exit":3,"attempt":1,"final":true,`+
		`"tick":"2531-05-06T12:00:00Z","began":"2531-05-06T11:59:58Z","start":"2026-05-06T12:00:00Z","duration_ns":1}`+"\n")
	report := tickReportOf(t, s.once([]string{"-q", "--json", "--every", "1h"}, "true"))
	require.True(t, report.Ran)
	require.Len(t, report.Warnings, 1)
	require.Contains(t, report.Warnings[0], "is for the tick of 2531-05-06 12:00:00 UTC, later than any that --every 1h can mean")
	require.Equal(t, ended{0, "", ""}, s.once([]string{"-q", "--every", "1h"}, "true"))
	require.Equal(t, []string{"1"}, s.attempts())
	require.Equal(t, "done", s.result("x").State)
}

// The job's environment has its tick.
func TestJobKnowsItsTick(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	got := s.run("run", "-n", "x", "--every", "1d@00:00", "--json", "--", "printenv", "MULTILOCK_TICK")
	require.Equal(t, tickReportOf(t, got).Tick.Format(time.RFC3339)+"\n", got.stdout)
	require.Equal(t, 1, s.run("run", "-n", "y", "--", "printenv", "MULTILOCK_TICK").code)
}
