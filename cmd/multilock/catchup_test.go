//go:build unix

package main_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ticksOf returns a job that prints its tick.
func ticksOf(end string) []string {
	return []string{"--", "sh", "-c", `echo "$MULTILOCK_TICK"; ` + end}
}

// ranAtTick records a result for the hourly tick a number of hours ago.
func (s *station) ranAtTick(name string, hours int) time.Time {
	s.t.Helper()
	tick := time.Now().UTC().Truncate(time.Hour).Add(-time.Duration(hours) * time.Hour)
	s.ran(name, "1h@0m", time.Since(tick), 0)
	return tick
}

// Missed ticks are run once each, by the first process, and older ones are reported as missed. (If an hour
// begins during the test, there is one more tick.)
func TestCatchUpCommand(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.ranAtTick("x", 6)
	got := s.run(append([]string{"run", "-n", "x", "--every", "1h@0m", "--catch-up", "all:2"}, ticksOf("true")...)...)
	require.Zero(t, got.code, got.stderr)
	ticks := strings.Fields(got.stdout)
	require.Len(t, ticks, 3)
	last, err := time.Parse(time.RFC3339, ticks[2])
	require.NoError(t, err)
	require.Equal(t, []string{last.Add(-2 * time.Hour).Format(time.RFC3339), last.Add(-time.Hour).Format(time.RFC3339), last.Format(time.RFC3339)}, ticks)
	require.Contains(t, got.stderr, `job "x" is done for its tick of `)

	again := s.run(append([]string{"run", "-q", "-n", "x", "--every", "1h@0m", "--catch-up", "all:2"}, ticksOf("true")...)...)
	require.Zero(t, again.code)
	require.LessOrEqual(t, len(strings.Fields(again.stdout)), 1)
	require.Regexp(t, `recorded .*attempt 1, tick [-0-9]+ [:0-9]+ UTC \([34] ticks missed before it\), exit 0`, s.must("history", "x"))
	require.Regexp(t, `"missed_ticks": [34],`, s.must("report", "--json"))
	require.Equal(t, "ok, on_time", s.overdue("x").severities()["x"])
}

func TestCatchUpLatest(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	tick := s.ranAtTick("x", 4)
	got := s.run(append([]string{"run", "-q", "-n", "x", "--every", "1h@0m", "--catch-up", "latest"}, ticksOf("true")...)...)
	require.Len(t, strings.Fields(got.stdout), 1)
	ran, err := time.Parse(time.RFC3339, strings.TrimSpace(got.stdout))
	require.NoError(t, err)
	require.GreaterOrEqual(t, ran.Sub(tick), 4*time.Hour)
	require.Less(t, time.Since(ran), time.Hour+time.Minute)
}

// A tick that fails permanently ends the run with its exit code, and the next run continues after it.
func TestCatchUpCommandStopsAtAFailure(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.ranAtTick("x", 3)
	args := []string{"run", "-q", "-n", "x", "--every", "1h@0m", "--catch-up", "all:9"}
	got := s.run(append(args, ticksOf("exit 3")...)...)
	require.Equal(t, 3, got.code)
	failed := strings.Fields(got.stdout)
	require.Len(t, failed, 1)
	got = s.run(append(args, ticksOf("true")...)...)
	require.Zero(t, got.code)
	require.NotEmpty(t, strings.Fields(got.stdout))
	require.NotContains(t, got.stdout, failed[0])
}

func TestCatchUpUsage(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	for _, args := range [][]string{
		{"--catch-up", "latest"}, {"--once", "--catch-up", "all:3"}, {"--every", "1h", "--catch-up", "all"}, {"--every", "1h", "--catch-up", "all:0"}, {"--every", "1h", "--catch-up", "most"},
	} {
		got := s.run(append(append([]string{"run", "-n", "x"}, args...), "--", "true")...)
		require.Equal(t, 125, got.code, args)
		require.Contains(t, got.stderr, "--catch-up", args)
	}
	s.requireUntouched()
}
